package nodecache

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// An address that is kept for a pod, or for the next one of a topology, has a state of its own:
//
//	10.0.1.5    1 reserved      1234.567 db db 0b1c-... db-0
//	10.0.1.6    1 reserved      1234.567 db - - -
//	10.0.1.7    1 claimed       1250.000 veth pods 3f... eth0 /run/netns/x 4026532000 db 0b1c-... db-1 db =
//
// A reserved one has its topology and the namespace, uid and name of the pod, and so has a releasing one that was
// reserved: it is no other pod's, should it not go after all. A claimed one has an owner as a used
// one has, then the topology and whose it is after that. The names identify here, and are never cut. A
// reader that knows neither state would call such lines damaged and, worse, serve pods that wait for theirs with any
// address: so a file with one of them is of version 2, and demands a reader of it.
const (
	reservedName = "reserved"
	claimedName  = "claimed"
)

// Whose a claimed address is once its pod ends.
const (
	forThisPod = "=" // the owner's
	forAnyUID  = "*" // that of any pod of the owner's name
	forNobody  = "-"
	forUID     = "uid=" // and that one
)

// reservedVersion is the oldest version that knows what is reserved.
const reservedVersion = 2

// versionOf returns the oldest version of a reader that knows all that the state has.
func versionOf(s *ipam.State) int {
	if len(s.Settings.Gated) > 0 {
		return reservedVersion
	}
	for i := range s.Addresses {
		if s.Addresses[i].Reservation != nil {
			return reservedVersion
		}
	}
	return 1
}

var errOldHead = errors.New("update node cache: the first reservation in it needs Replace, which writes its head too")

func encodeReservation(address *eni.Address) (string, error) {
	r, kept := address.Reservation, reservedName
	if address.State == eni.Releasing {
		kept = eni.Releasing.String()
	}
	words := []string{encodeStart(address, kept, address.Since), escape(r.Topology), escape(r.Namespace), escape(r.UID), escape(r.Pod)}
	if o := address.Owner; o != nil {
		state := claimedName
		if address.Lost {
			state = lostName
		}
		words = []string{encodeStart(address, state, address.Since), o.Kind.String(), escape(o.Network), escape(o.Container), escape(o.IfName), escape(o.Netns),
			strconv.FormatUint(o.NetnsInode, 10), escape(o.Namespace), escape(o.UID), escape(o.Pod), escape(r.Topology), encodeFor(r, o)}
		if r.IsNobodys() { // then these inform, as in the line of a used address: a rebuild must not fail for them
			const namespace, uid, pod = 7, 8, 9 // in words
			words[namespace], words[uid] = cutField(words[namespace], maxNamespace), cutField(words[uid], maxUID)
			over := len(strings.Join(words, " ")) - textSize
			words[pod] = cutField(words[pod], max(1, len(words[pod])-max(0, over)))
		}
	}
	text := strings.Join(words, " ")
	if len(text) > textSize {
		return "", fmt.Errorf("%w: its names have %d bytes together with those of the pod and topology that %s is kept for", ErrOwnerTooLong, len(text)-ownerAt, address.Addr)
	}
	return text, nil
}

func encodeFor(r *eni.Reservation, o *eni.Owner) string {
	switch {
	case r.IsNobodys():
		return forNobody
	case r.UID == o.UID:
		return forThisPod
	case r.UID == "":
		return forAnyUID
	}
	return forUID + escape(r.UID)
}

func decodeReservation(text []byte, r *eni.Reservation) {
	var word []byte
	for _, p := range [...]*string{&r.Topology, &r.Namespace, &r.UID, &r.Pod} {
		word, text = nextField(text)
		*p = unescape(string(word))
	}
}

// decodeClaim reads what follows the owner of a claimed address. A lost one without it is kept for nobody.
func decodeClaim(text []byte, address *eni.Address) error {
	topology, text := nextField(text)
	word, _ := nextField(text)
	switch {
	case len(topology) == 0 && address.Lost:
		return nil
	case len(word) == 0:
		return fmt.Errorf("state %q: it is not said for whom the address is kept", claimedName)
	}
	o, r := address.Owner, &eni.Reservation{Topology: unescape(string(topology))}
	address.Reservation = r
	if string(word) == forNobody {
		return nil
	}
	r.Namespace, r.Pod = o.Namespace, o.Pod
	uid, one := strings.CutPrefix(string(word), forUID)
	switch {
	case one:
		r.UID = unescape(uid)
	case string(word) == forThisPod:
		r.UID = o.UID
	case string(word) != forAnyUID:
		return fmt.Errorf("state %q: for whom the address is kept can't be read: %q", claimedName, word)
	}
	return nil
}

// mayBeKept tells whether a damaged address line may be that of an address that is kept for a pod. What no state of version 1
// stands in may have been anything. It returns the topology where the line has one.
func mayBeKept(text []byte) (topology string, kept bool) {
	var word []byte
	for range 3 { // address, ENI, state
		word, text = shortField(text)
	}
	var a eni.Address
	state, lost, err := decodeState(word, &a)
	switch {
	case err != nil || state == eni.Used && a.Reservation != nil:
		return "", true
	case state != eni.Reserved && state != eni.Releasing:
		return "", lost
	}
	_, text = shortField(text)
	var r eni.Reservation
	decodeReservation(text, &r)
	return r.Topology, state == eni.Reserved || r != eni.Reservation{}
}
