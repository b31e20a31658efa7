package configfile

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
	lastgood.Pair
	text []byte
	at   lastgood.File // where it is kept now
	as   os.FileInfo   // as it was written, nil where it could not be
}

// keepingFor returns where the text of a file is kept for an agent with that file of its own.
func keepingFor(state, of string, text []byte) keeping {
	return keeping{Pair: lastgood.PairFor(state, of), text: text}
}

// keepSource keeps what is in force now.
func (r *Reload) keepSource(found Source) {
	of, err := filepath.Abs(found.file.path)
	if err != nil {
		r.refused.noteKept("", err, nil)
		return
	}
	was := r.kept
	r.kept = keepingFor(found.Conf.State, of, found.Text)
	if r.writeKept() && was.at.Path != "" && was.at.Path != r.kept.Durable.Path && was.at.Path != r.kept.Beside.Path {
		was.at.Remove() // where the file says otherwise now, nobody may find the old one
	}
}

// writeKept writes down what is to be kept, and tells whether it could. Where nothing can be written
// that outlasts a reboot, it is kept until the next one.
func (r *Reload) writeKept() bool {
	k := &r.kept
	var volatile, err error
	k.as = nil
	if k.at, volatile, err = k.Keep(k.text); err == nil {
		k.as, err = os.Stat(k.at.Path)
	}
	if err != nil {
		volatile = nil // that a reboot ends it, too, is no news
	}
	r.refused.noteKept(k.at.Path, err, volatile)
	return err == nil
}

// keepStill writes again what others took away, and what could not be written so that it
// outlasts a reboot.
func (r *Reload) keepStill() {
	k := r.kept
	if k.Durable.Path == "" {
		return
	}
	is, err := os.Stat(k.at.Path)
	if was := k.as; k.at == k.Durable && err == nil && was != nil && os.SameFile(is, was) && is.ModTime().Equal(was.ModTime()) && is.Size() == was.Size() {
		return
	}
	r.writeKept()
}

// startFromKept is for an agent that starts with what is kept, because its file is wrong.
func (r *Reload) startFromKept(wrong error, k keeping) {
	r.Log.Error("the configuration file is wrong: the agent starts with the configuration that was in force last", "kept", k.at.Path)
	r.kept = k
	r.refused.noteKept(k.at.Path, nil, nil)
	r.refused.startWithout(wrong)
}
