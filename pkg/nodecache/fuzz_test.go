package nodecache

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// seal makes whole lines with sums that hold of any text, so that a fuzzer gets
// past the sums.
func seal(text string) []byte {
	var file []byte
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		file = appendLine(file, line[:min(len(line), textSize)], n)
	}
	return file
}

// texts is the inverse of seal.
func texts(file []byte) string {
	var b strings.Builder
	for n := range len(file) / lineSize {
		b.Write(bytes.TrimRight(file[n*lineSize:][:textSize], " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// FuzzDecode: no file makes it panic, and the node state of a file that makes sense is
// the same when it has been written and read once more.
func FuzzDecode(f *testing.F) {
	f.Add(texts(mustEncode(f, small())))
	f.Add(texts(mustEncode(f, fullCache(2))))
	f.Add(texts(resum(mustEncode(f, small()), 12, "10.0.0.11 0 used 1.000 veth %00 %2 % - 0 - - %zz")))
	f.Add(texts(mustEncode(f, kept())))
	f.Add("enipool-node-cache 3 min 3")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := decodeBytes([]byte(text)); err == nil && text == "" {
			t.Error("an empty file is a node state")
		}
		s, err := decodeBytes(seal(text))
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
				t.Errorf("an error without a type: %v", err)
			}
			return
		}
		s.Damaged = nil
		if s.Check() != nil {
			return // Replace refuses to write it
		}
		file, err := encode(&s.State, s.boot, s.generation)
		if err != nil {
			return // longer when escaped as it should have been
		}
		again, err := decodeBytes(file)
		if err != nil {
			t.Fatal(err)
		}
		// Names that only inform may have been cut, once.
		informs := cmpopts.IgnoreFields(eni.Owner{}, "Namespace", "Pod", "UID")
		if diff := diff(&s.State, &again.State, informs); diff != "" {
			t.Error(diff)
		}
		once, err := decodeBytes(mustEncode(t, &again.State))
		if err != nil {
			t.Fatal(err)
		}
		if diff := diff(&again.State, &once.State); diff != "" {
			t.Error(diff)
		}
		if again.boot != s.boot || again.generation != s.generation {
			t.Errorf("boot %q generation %d became %q and %d", s.boot, s.generation, again.boot, again.generation)
		}
	})
}

// FuzzAddressLine: no line makes it panic, what decodes decodes to the same once
// more, and for one owner it does the same as for all.
func FuzzAddressLine(f *testing.F) {
	for _, a := range append(small().Addresses, kept().Addresses...) {
		text, err := encodeAddress(&a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "pods", "web", "eth0")
	}
	f.Add("10.0.0.11 0 used 1.000 veth %00 %2 % - 0 - - %zz", "\x00", "", "")
	f.Add("10.0.0.11 0 cooling 4294967295.000 held 1.000 route  10.0.0.11 dev \x01", "", "", "")
	f.Add("10.0.0.11 0 cooling 4294967295.000", "", "", "")
	f.Add("10.0.0.11 0 held 1.000", "", "", "")
	f.Fuzz(func(t *testing.T, text, network, container, ifname string) {
		var a, again eni.Address
		if decodeAddress([]byte(text), &a) != nil {
			return
		}
		line, err := encodeAddress(&a)
		if err != nil {
			return // too long when escaped as it should have been
		}
		k := eni.Key{Network: network, Container: container, IfName: ifname}
		another := usedByAnother([]byte(line), ownerPrefix(k))
		// What another has claimed is shown: an ADD has to know whether that is of its pod.
		if want := a.State == eni.Used && a.Owner.Key != k && (a.Reservation == nil || a.Lost); another != want {
			t.Fatalf("%q used by another than %s: %v, want %v", line, k, another, want)
		}
		if err := decodeAddress([]byte(line), &again); err != nil || show(again) != show(a) {
			if a.Owner != nil && len(line) >= textSize { // names that only inform were cut
				return
			}
			t.Fatalf("%q is %s, %q is %s: %v", text, show(a), line, show(again), err)
		}
	})
}
