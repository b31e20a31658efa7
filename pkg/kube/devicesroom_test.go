package kube

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/enipool/enipool/pkg/devices"
)

// life is a pod of a node from its binding to its end.
type life struct {
	claim  string // its ResourceClaim, "" for none
	ours   bool   // that is for an address
	device string // that the scheduler took
	stage  int
}

// The stages of a pod: claims are prepared before the address comes and unprepared before the pod is seen to be gone.
const (
	bound = iota
	prepared
	running
	ending
	unprepared
	gone
)

func (l life) pod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name), Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: here},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if l.claim != "" {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &l.claim}}
	}
	if l.stage >= running {
		p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.7"
	}
	if l.stage >= ending {
		p.DeletionTimestamp = &metav1.Time{}
	}
	return p
}

// counted is one node twice: as its Node object would count its pods, and by devices.
type counted struct {
	t                *rapid.T
	now              time.Time
	node             devices.Node
	lives            []life
	made             int
	byNode, byDevice *room
	memory           devices.Memory
	shown            []devices.Device
}

// free returns the names of devices of which the scheduler has an address to give, which is what is left of those that it has seen.
func (c *counted) free() (names []string) {
	for _, d := range c.shown {
		taken := 0
		for _, l := range c.lives {
			if l.device == d.Name {
				taken++
			}
		}
		if taken < d.Addresses {
			names = append(names, d.Name)
		}
	}
	return names
}

func (c *counted) bind() {
	c.made++
	l := life{}
	switch free := c.free(); rapid.IntRange(0, 2).Draw(c.t, "kind") {
	case 0:
		l.claim = fmt.Sprint("other-", c.made)
	case 1:
		if len(free) > 0 {
			l = life{claim: fmt.Sprint("address-", c.made), ours: true, device: rapid.SampledFrom(free).Draw(c.t, "device")}
		}
	}
	c.lives = append(c.lives, l)
}

func (c *counted) advance() {
	if len(c.lives) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.lives)-1).Draw(c.t, "pod")
	if c.lives[i].stage++; c.lives[i].stage == gone {
		c.lives = slices.Delete(c.lives, i, i+1)
	}
}

// check compares what the two show.
func (c *counted) check(*rapid.T) {
	var pods []any
	var claims []devices.Claim
	var truth load
	for i, l := range c.lives {
		pods = append(pods, l.pod(strconv.Itoa(i)))
		if l.ours && l.stage >= prepared && l.stage < unprepared {
			claims = append(claims, devices.Claim{UID: l.claim, Namespace: "ns", Name: l.claim, Devices: []string{l.device}})
		}
		// Whose the claims of a pod are that has no address yet nobody knows.
		if l.ours || l.claim != "" && l.stage < running {
			truth.asked++
		} else {
			truth.silent++
		}
	}
	var is load
	is.asked, is.silent = c.memory.Count(reservations(pods, here), claims)
	aged := newNode()
	aged.CreationTimestamp = metav1.NewTime(c.now.Add(-2 * young))
	want, _ := c.byNode.numberToShow(c.now, c.node.Total, truth, aged)
	node := c.node
	node.Total, _ = c.byDevice.numberToShow(c.now, c.node.Total, is, aged)
	c.shown = node.List(devices.Reserved(claims))
	sum := 0
	for _, d := range c.shown {
		sum += d.Addresses
	}
	if sum != want {
		c.t.Fatalf("devices have %d addresses, the Node would have %d of %d\npods %+v\ndevices %+v", sum, want, c.node.Total, c.lives, c.shown)
	}
}

// Whatever becomes of a node and its pods, its devices have as many addresses as its Node object would show.
func TestDevicesSumUpToWhatTheNodeWouldShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &counted{t: t, now: time.Now(), byNode: newRoom(), byDevice: newRoom(),
			node: devices.Node{Total: rapid.IntRange(1, 40).Draw(t, "capacity"), PerENI: rapid.IntRange(0, 16).Draw(t, "perENI")}}
		t.Repeat(map[string]func(*rapid.T){
			"":        c.check,
			"bind":    func(*rapid.T) { c.bind() },
			"advance": func(*rapid.T) { c.advance() },
			"wait": func(t *rapid.T) {
				c.now = c.now.Add(time.Duration(rapid.IntRange(1, 2400).Draw(t, "seconds")) * time.Second)
			},
			"resize": func(t *rapid.T) { c.node.Total = rapid.IntRange(len(c.lives), 40+len(c.lives)).Draw(t, "capacity") },
			"ENIs": func(t *rapid.T) {
				c.node.ENIs = []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "ENIs")]
				c.node.PerENI = rapid.IntRange(0, 16).Draw(t, "perENI")
			},
		})
	})
}
