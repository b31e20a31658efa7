package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/enipool/enipool/pkg/config/lastgood"
)

// keepAgain is how often the agent looks whether what it keeps is still there.
const keepAgain = time.Minute

// keeping is what is in force, and where it is kept for a start at which the file is wrong.
type keeping struct {
	file lastgood.File
	text []byte
	as   os.FileInfo // as it was written, nil where it could not be
}

// keep keeps what is in force now.
func (r *reload) keep(s source) {
	of, err := filepath.Abs(s.file.path)
	if err != nil {
		r.refused.keeps("", err)
		return
	}
	next := keeping{file: lastgood.Beside(s.conf.State, of), text: s.text}
	was := r.kept
	r.kept = next
	if r.write() && was.file.Path != "" && was.file.Path != next.file.Path {
		was.file.Remove() // where the file says otherwise now, nobody may find the old one
	}
}

// write writes down what is to be kept, and tells whether it could.
func (r *reload) write() bool {
	err := r.kept.file.Keep(r.kept.text)
	r.kept.as = nil
	if err == nil {
		r.kept.as, err = os.Stat(r.kept.file.Path)
	}
	r.refused.keeps(r.kept.file.Path, err)
	return err == nil
}

// keepStill writes again what others took away, and what could not be written.
func (r *reload) keepStill() {
	if r.kept.file.Path == "" {
		return
	}
	is, err := os.Stat(r.kept.file.Path)
	if was := r.kept.as; err == nil && was != nil && os.SameFile(is, was) && is.ModTime().Equal(was.ModTime()) && is.Size() == was.Size() {
		return
	}
	r.write()
}

// start is for an agent that starts with what is kept, because its file is wrong.
func (r *reload) start(wrong error, k keeping) {
	r.log.Error("the configuration file is wrong: the agent starts with the configuration that was in force last", "kept", k.file.Path)
	r.kept = k
	r.refused.keeps(k.file.Path, nil)
	r.refused.start(wrong)
}
