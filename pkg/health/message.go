package health

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// mostWords is the most bytes of the cloud's or kernel's words in a message: it goes into a
// condition of the node and into events.
const mostWords = 200

// say writes the message of a fault with the numbers of now. While the reason stays it is called
// seldom: see silence.
func (s *State) say(o Observation, now time.Duration) {
	c := Cause{Reason: s.Reason}
	if s.Cause == s.Reason {
		c.What, c.Remedy = s.What, s.Remedy
	}
	s.Message, s.Said = message(c, o), now
}

// Explain says what keeps a node from more addresses and what to do. Where nothing failed it says
// only the first.
func Explain(c Cause) string {
	f, _ := faultOf(c.Reason)
	if f.reason == NoFreeAddress && c.What != "" {
		return c.What
	}
	return cmp.Or(c.What, f.words) + "; " + cmp.Or(c.Remedy, f.remedy)
}

// message tells people what is wrong, in numbers, why, and what to do.
func message(c Cause, o Observation) string {
	f, _ := faultOf(c.Reason)
	why, remedy := cmp.Or(c.What, f.words), cmp.Or(c.Remedy, f.remedy)
	if !o.Usable {
		return fmt.Sprintf("pods can get no address: %s; %s", why, remedy)
	}
	return fmt.Sprintf("%s: %s; %s; %s", lack(o.Unserved), numbers(o), why, remedy)
}

// lack says who has no address.
func lack(pods int) string {
	switch pods {
	case 0:
		return "the next pod may get no address"
	case 1:
		return "1 pod has no address"
	}
	return fmt.Sprintf("%d pods have no address", pods)
}

func numbers(o Observation) string {
	text := fmt.Sprintf("%d there, %d used, %d free, %d cooling, demand %d, target %d", o.Have, o.Used, o.Free, o.Cooling, o.Demand, o.Target)
	if o.Most >= 0 {
		text += fmt.Sprintf(", at most %d", o.Most)
	}
	return text
}

// words makes somebody else's text one line of valid UTF-8 that is not too long.
func words(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > mostWords {
		text = strings.ToValidUTF8(text[:mostWords], "") + "..."
	}
	return text
}
