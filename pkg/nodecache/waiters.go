package nodecache

import (
	"bytes"
	"cmp"

	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/digest"
	"github.com/enipool/enipool/pkg/eni"
)

// Waiter is an ADD that found no free address: it waits for one, or it has failed
// and its runtime is about to try again.
type Waiter struct {
	Owner eni.Owner     // what identifies the attachment and its pod; the rest is not kept
	PID   int           // of the plugin
	Since time.Duration // when it began, as time since boot
	Until time.Duration // when it ends at the latest

	// Failed tells that the ADD has ended, at Since; until then its pod still counts.
	Failed bool
}

// Waiting is the announcement of an ADD that waits.
type Waiting struct{ path, text string }

const (
	// waitersMagic begins each file; its number is the version of the format.
	waitersMagic = "waiter 1"
	// maxWaiter limits what is read of a file.
	maxWaiter = 4096
	// waitsNoMore marks the file of an ADD that has failed. Older readers don't look for
	// it.
	waitsNoMore = " failed"
	// waiterGrace is how long a waiter may take to end after its deadline.
	waiterGrace = time.Second
	// unfinished ends the name of a file that is being written.
	unfinished = ".new"
	// leftoverAge is how old such a file is when its writer must be dead.
	leftoverAge = time.Minute
)

func (c Cache) waitersDir() string { return c.Path + ".waiters" }

// Announce tells the agent that an ADD waits for an address until then, as time
// since boot. What announces itself and is killed counts until a second later.
func (c Cache) Announce(owner eni.Owner, until time.Duration) (*Waiting, error) {
	return c.announce(Waiter{Owner: owner, Until: until})
}

// AnnounceFailed tells the agent that an ADD has failed for want of an address, and
// that its runtime tries again until then. Nobody has to take that back.
func (c Cache) AnnounceFailed(owner eni.Owner, until time.Duration) error {
	_, err := c.announce(Waiter{Owner: owner, Until: until, Failed: true})
	return err
}

// announce writes the file of a waiter that begins now.
func (c Cache) announce(pending Waiter) (*Waiting, error) {
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	pending.PID, pending.Since = os.Getpid(), SinceBoot()
	owner, text := pending.Owner, pending.encode(boot)
	if len(text) > maxWaiter {
		return nil, fmt.Errorf("announce %s: %w", owner.Key, ErrOwnerTooLong)
	}
	if err := os.Mkdir(c.waitersDir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("announce %s: %w", owner.Key, err)
	}
	sum := digest.Sum256(owner.Network + "\x00" + owner.Container + "\x00" + owner.IfName)
	path := filepath.Join(c.waitersDir(), hex.EncodeToString(sum[:8]))
	// Two plugins may be at it for one attachment: each writes a file of its own.
	if err := writeWhole(fmt.Sprintf("%s.%d%s", path, pending.PID, unfinished), path, text); err != nil {
		return nil, fmt.Errorf("announce %s: %w", owner.Key, err)
	}
	return &Waiting{path, text}, nil
}

// Done takes the announcement back, unless a later one of the same attachment has
// taken its place. On a nil Waiting it does nothing.
func (w *Waiting) Done() {
	if w == nil {
		return
	}
	if text, err := os.ReadFile(w.path); err == nil && string(text) == w.text {
		_ = os.Remove(w.path) // if that fails it ends by its deadline
	}
}

// Waiters returns the ADDs that wait at now, the longest waiting first. Each pod
// counts once for an interface of a network, however many sandboxes tried. Files
// of waiters that are over, of another boot, or damaged are removed. Waiters that
// could be read are returned with an error too.
func (c Cache) Waiters(now time.Duration) ([]Waiter, error) {
	entries, err := os.ReadDir(c.waitersDir())
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil, nil
	}
	boot, errBoot := BootID()
	if err := errors.Join(err, errBoot); err != nil {
		return nil, fmt.Errorf("read pending ADDs: %w", err)
	}
	var errs []error
	live := map[string]Waiter{}
	for _, e := range entries {
		pending, ok, err := readWaiter(filepath.Join(c.waitersDir(), e.Name()), e, boot, now)
		if ok && pending.Since >= live[pending.demand()].Since {
			live[pending.demand()] = pending
		}
		errs = append(errs, err)
	}
	list := slices.SortedFunc(maps.Values(live), func(a, b Waiter) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), strings.Compare(a.Owner.Key.String(), b.Owner.Key.String()))
	})
	return list, errors.Join(errs...)
}

// readWaiter reads one file of the folder, and removes it if it is over.
func readWaiter(path string, e fs.DirEntry, boot string, now time.Duration) (pending Waiter, ok bool, err error) {
	if !e.Type().IsRegular() {
		return Waiter{}, false, nil // none of ours; a FIFO would keep us
	}
	info, err := e.Info()
	if err == nil && strings.HasSuffix(path, unfinished) {
		if time.Since(info.ModTime()) > leftoverAge {
			err = os.Remove(path)
		}
		return Waiter{}, false, ignoreGone(err)
	}
	var text []byte
	if err == nil && info.Size() <= maxWaiter {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return Waiter{}, false, ignoreGone(err)
	}
	pending, of, ok := decodeWaiter(text)
	if ok && of == boot && now <= pending.Until+waiterGrace {
		return pending, true, nil
	}
	return Waiter{}, false, ignoreGone(os.Remove(path))
}

// ignoreGone forgives that a waiter took its own file away.
func ignoreGone(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("read pending ADDs: %w", err)
}

// demand is what a waiter counts as: a kubelet that tries again makes a new sandbox,
// and it is still one pod that needs one address.
func (w Waiter) demand() string {
	pod := "container " + w.Owner.Container
	switch {
	case w.Owner.UID != "":
		pod = "uid " + w.Owner.UID
	case w.Owner.Pod != "":
		pod = "pod " + w.Owner.Namespace + "/" + w.Owner.Pod
	}
	return w.Owner.Network + "\x00" + w.Owner.IfName + "\x00" + pod
}

// encode returns the waiter as the one line of its file.
func (w Waiter) encode(boot string) string {
	ms := func(d time.Duration) string {
		n := (d + time.Millisecond - 1).Milliseconds()
		return fmt.Sprintf("%d.%03d", n/1000, n%1000)
	}
	owner, end := w.Owner, "\n"
	if w.Failed {
		end = waitsNoMore + end
	}
	return fmt.Sprintf("%s %s %s %s %d %s %s %s %s %s %s%s", waitersMagic, boot, ms(w.Since), ms(w.Until), w.PID,
		escape(owner.Network), escape(owner.Container), escape(owner.IfName), escape(owner.Namespace), escape(owner.UID), escape(owner.Pod), end)
}

// decodeWaiter is the inverse of encode, or false.
func decodeWaiter(text []byte) (pending Waiter, boot string, ok bool) {
	text, whole := bytes.CutSuffix(text, []byte("\n"))
	text, ours := bytes.CutPrefix(text, []byte(waitersMagic+" "))
	fields := strings.Split(string(text), " ")
	if !whole || !ours || len(fields) < 10 { // more is a newer writer's
		return Waiter{}, "", false
	}
	var err1, err2, err3 error
	pending.Since, err1 = decodeSince([]byte(fields[1]))
	pending.Until, err2 = decodeSince([]byte(fields[2]))
	pending.PID, err3 = strconv.Atoi(fields[3])
	for i, p := range []*string{&pending.Owner.Network, &pending.Owner.Container, &pending.Owner.IfName, &pending.Owner.Namespace, &pending.Owner.UID, &pending.Owner.Pod} {
		*p = unescape(fields[4+i])
	}
	pending.Failed = len(fields) > 10 && fields[10] == waitsNoMore[1:]
	return pending, fields[0], errors.Join(err1, err2, err3) == nil
}
