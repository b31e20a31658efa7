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

// PendingADD is a pending ADD: it found no free address and waits for one, or it has failed and
// its runtime is about to try again.
type PendingADD struct {
	Owner eni.Owner     // what identifies the attachment and its pod; the rest is not kept
	PID   int           // of the plugin
	Since time.Duration // when it began, as time since boot
	Until time.Duration // when it ends at the latest

	// Failed tells that the ADD has ended, at Since; until then its pod still counts.
	Failed bool
}

// Announcement is that of a pending ADD.
type Announcement struct{ path, text string }

const (
	// pendingMagic begins each file; its number is the version of the format.
	pendingMagic = "waiter 1"
	// maxPending limits what is read of a file.
	maxPending = 4096
	// hasFailed marks the file of an ADD that has failed. Older readers ignore it.
	hasFailed = " failed"
	// pendingGrace is how long an ADD may take to end after its deadline.
	pendingGrace = time.Second
	// unfinished ends the name of a file that is being written.
	unfinished = ".new"
	// leftoverAge is how old such a file is when its writer must be dead.
	leftoverAge = time.Minute
)

func (c Cache) pendingDir() string { return c.Path + ".waiters" }

// Announce tells the agent that an ADD waits for an address until then, a time since boot. If
// the ADD is killed it counts until a second later.
func (c Cache) Announce(owner eni.Owner, until time.Duration) (*Announcement, error) {
	return c.announce(PendingADD{Owner: owner, Until: until})
}

// AnnounceFailed tells the agent that an ADD has failed for want of an address, and that its
// runtime tries again until then, a time since boot. It ends by itself.
func (c Cache) AnnounceFailed(owner eni.Owner, until time.Duration) error {
	_, err := c.announce(PendingADD{Owner: owner, Until: until, Failed: true})
	return err
}

// announce writes the file of a pending ADD that begins now.
func (c Cache) announce(pending PendingADD) (*Announcement, error) {
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	pending.PID, pending.Since = os.Getpid(), SinceBoot()
	owner, text := pending.Owner, pending.encode(boot)
	if len(text) > maxPending {
		return nil, fmt.Errorf("announce %s: %w", owner.Key, ErrOwnerTooLong)
	}
	if err := os.Mkdir(c.pendingDir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("announce %s: %w", owner.Key, err)
	}
	sum := digest.Sum256(owner.Network + "\x00" + owner.Container + "\x00" + owner.IfName)
	path := filepath.Join(c.pendingDir(), hex.EncodeToString(sum[:8]))
	// Two plugins may announce the same attachment at once: each writes a temporary file of its own.
	if err := writeWhole(fmt.Sprintf("%s.%d%s", path, pending.PID, unfinished), path, text); err != nil {
		return nil, fmt.Errorf("announce %s: %w", owner.Key, err)
	}
	return &Announcement{path, text}, nil
}

// Done removes the announcement, unless a later one of the same attachment has replaced it. On
// a nil Announcement it does nothing.
func (w *Announcement) Done() {
	if w == nil {
		return
	}
	if text, err := os.ReadFile(w.path); err == nil && string(text) == w.text {
		_ = os.Remove(w.path) // if that fails it ends by its deadline
	}
}

// PendingADDs returns the pending ADDs at now, a time since boot, the longest waiting first. Each
// pod counts once for an interface of a network, however many sandboxes tried. Files that are
// past their time, of another boot, or damaged are removed. With an error it returns those that
// could be read too.
func (c Cache) PendingADDs(now time.Duration) ([]PendingADD, error) {
	entries, err := os.ReadDir(c.pendingDir())
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil, nil
	}
	boot, errBoot := BootID()
	if err := errors.Join(err, errBoot); err != nil {
		return nil, fmt.Errorf("read pending ADDs: %w", err)
	}
	var errs []error
	live := map[string]PendingADD{}
	for _, e := range entries {
		pending, ok, err := readPending(filepath.Join(c.pendingDir(), e.Name()), e, boot, now)
		if ok && pending.Since >= live[pending.demand()].Since {
			live[pending.demand()] = pending
		}
		errs = append(errs, err)
	}
	list := slices.SortedFunc(maps.Values(live), func(a, b PendingADD) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), strings.Compare(a.Owner.Key.String(), b.Owner.Key.String()))
	})
	return list, errors.Join(errs...)
}

// readPending reads one file of the folder, and removes it if its time is over.
func readPending(path string, e fs.DirEntry, boot string, now time.Duration) (pending PendingADD, ok bool, err error) {
	if !e.Type().IsRegular() {
		return PendingADD{}, false, nil // not enipool's; reading a FIFO would block
	}
	info, err := e.Info()
	if err == nil && strings.HasSuffix(path, unfinished) {
		if time.Since(info.ModTime()) > leftoverAge {
			err = os.Remove(path)
		}
		return PendingADD{}, false, ignoreGone(err)
	}
	var text []byte
	if err == nil && info.Size() <= maxPending {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return PendingADD{}, false, ignoreGone(err)
	}
	pending, of, ok := decodePending(text)
	if ok && of == boot && now <= pending.Until+pendingGrace {
		return pending, true, nil
	}
	return PendingADD{}, false, ignoreGone(os.Remove(path))
}

// ignoreGone drops the error of a file that its ADD has removed meanwhile.
func ignoreGone(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("read pending ADDs: %w", err)
}

// demand names what a pending ADD counts as: a kubelet that tries again makes a new sandbox,
// and it is still one pod that needs one address.
func (w PendingADD) demand() string {
	pod := "container " + w.Owner.Container
	switch {
	case w.Owner.UID != "":
		pod = "uid " + w.Owner.UID
	case w.Owner.Pod != "":
		pod = "pod " + w.Owner.Namespace + "/" + w.Owner.Pod
	}
	return w.Owner.Network + "\x00" + w.Owner.IfName + "\x00" + pod
}

// encode returns the pending ADD as the one line of its file.
func (w PendingADD) encode(boot string) string {
	ms := func(d time.Duration) string {
		n := (d + time.Millisecond - 1).Milliseconds()
		return fmt.Sprintf("%d.%03d", n/1000, n%1000)
	}
	owner, end := w.Owner, "\n"
	if w.Failed {
		end = hasFailed + end
	}
	return fmt.Sprintf("%s %s %s %s %d %s %s %s %s %s %s%s", pendingMagic, boot, ms(w.Since), ms(w.Until), w.PID,
		escape(owner.Network), escape(owner.Container), escape(owner.IfName), escape(owner.Namespace), escape(owner.UID), escape(owner.Pod), end)
}

// decodePending is the inverse of encode, or false.
func decodePending(text []byte) (pending PendingADD, boot string, ok bool) {
	text, whole := bytes.CutSuffix(text, []byte("\n"))
	text, ours := bytes.CutPrefix(text, []byte(pendingMagic+" "))
	fields := strings.Split(string(text), " ")
	if !whole || !ours || len(fields) < 10 { // more is a newer writer's
		return PendingADD{}, "", false
	}
	var err1, err2, err3 error
	pending.Since, err1 = decodeSince([]byte(fields[1]))
	pending.Until, err2 = decodeSince([]byte(fields[2]))
	pending.PID, err3 = strconv.Atoi(fields[3])
	for i, p := range []*string{&pending.Owner.Network, &pending.Owner.Container, &pending.Owner.IfName, &pending.Owner.Namespace, &pending.Owner.UID, &pending.Owner.Pod} {
		*p = unescape(fields[4+i])
	}
	pending.Failed = len(fields) > 10 && fields[10] == hasFailed[1:]
	return pending, fields[0], errors.Join(err1, err2, err3) == nil
}
