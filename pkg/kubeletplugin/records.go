package kubeletplugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/enipool/enipool/pkg/devices"
)

// records are the claims that are prepared, in a file beside the plugin's socket, so that an agent that was killed knows them
// again. There is a file from the first time on that the node had devices until they are taken away. Its methods may be called
// from several goroutines.
type records struct {
	path    string
	changed chan struct{}

	mu     sync.Mutex
	claims []devices.Claim // by UID
}

// recordsName is the file in the plugin's folder, and unfinishedName what is to become it.
const (
	recordsName    = "claims.json"
	unfinishedName = ".claims.new"
)

// recordsFile is what the file has.
type recordsFile struct {
	Claims []devices.Claim `json:"claims"`
}

// openRecords reads the file, and tells whether there is one. One that can't be read, as after a power cut, counts as one without claims: with
// the node's boot the kubelet has all of them prepared again.
func openRecords(path string) (r *records, exists bool, err error) {
	r = &records{path: path, changed: make(chan struct{}, 1)}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, false, nil
	}
	var file recordsFile
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		return r, true, fmt.Errorf("read the prepared claims: %w", err)
	}
	r.claims = file.Claims
	slices.SortFunc(r.claims, compareClaims)
	return r, true, nil
}

func compareClaims(a, b devices.Claim) int { return strings.Compare(a.UID, b.UID) }

// listClaims returns the claims, which are not to be changed.
func (r *records) listClaims() []devices.Claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claims
}

// findClaim returns the claim of that UID.
func (r *records) findClaim(uid string) (devices.Claim, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := slices.BinarySearchFunc(r.claims, devices.Claim{UID: uid}, compareClaims)
	if !found {
		return devices.Claim{}, false
	}
	return r.claims[i], true
}

// changeClaim adds a claim, or removes it, and returns once that is written.
func (r *records) changeClaim(claim devices.Claim, keep bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := slices.BinarySearchFunc(r.claims, claim, compareClaims)
	if found == keep {
		return nil
	}
	next := slices.Clone(r.claims) // who has the list goes on with the old one
	if keep {
		next = slices.Insert(next, i, claim)
	} else {
		next = slices.Delete(next, i, i+1)
	}
	if err := writeRecords(r.path, next); err != nil {
		return err
	}
	r.claims = next
	select {
	case r.changed <- struct{}{}:
	default:
	}
	return nil
}

// keepFile writes the file if there is none yet: the next agent sees by it that the node has had devices.
func (r *records) keepFile() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return writeRecords(r.path, r.claims)
}

// removeFile ends all of it.
func (r *records) removeFile() error {
	if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// writeRecords replaces the file by rename: an agent that is killed leaves the old one or the new one.
func writeRecords(path string, claims []devices.Claim) error {
	text, err := json.Marshal(recordsFile{Claims: claims})
	if err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(path), unfinishedName)
	if err := os.WriteFile(temp, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the prepared claims: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("write the prepared claims: %w", err)
	}
	return nil
}
