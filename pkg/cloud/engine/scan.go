package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Look implements cloud.Region. It describes either the instances, as many per request as the cloud
// takes, or the pages of the whole VPC, whichever takes fewer requests. Nodes whose primary ENI is
// needed and hidden from such requests are described one by one, the others so now and then.
func (r *Region) Look(ctx context.Context, instances []string) (views map[string]cloud.View, err error) {
	defer nameError(&err, "Look", "")
	if len(instances) == 0 {
		instances = r.allInstances()
	}
	nodes := map[string]*Node{}
	views = map[string]cloud.View{}
	var together []string
	for _, id := range sortedSet(instances) {
		node, err := r.nodeOf(id)
		if err != nil {
			return nil, err
		}
		if nodes[id] = node; !node.needsOwn() {
			together = append(together, id)
			continue
		}
		_, err = node.describeENIs(ctx)
		if errors.Is(err, cloud.ErrThrottled) {
			return nil, err // the next one would fail in the same way
		}
		if views[id] = node.viewAfter(err); err == nil {
			r.notePrimary(id)
		}
	}
	if together = r.describePrimaries(ctx, nodes, together, views); len(together) == 0 {
		return views, nil
	}
	s := &scan{Region: r, began: r.self.clock.Now(), nodes: nodes, made: map[string][]driver.Interface{}, here: map[string][]driver.Interface{}, all: map[string]bool{}}
	if err := s.describeTogether(ctx, together); err != nil {
		return nil, err
	}
	if err := s.acceptViews(ctx, together, views); err != nil {
		return nil, err
	}
	return views, nil
}

// needsOwn tells whether the node has to be described by itself: the pages of a VPC lack its primary
// ENI, and pods have addresses there or nothing is known of it yet.
func (n *Node) needsOwn() bool {
	if !n.t.HidesPrimary {
		return false
	}
	n.mu.Lock()
	unknown := n.own.ID == "" || n.shape.ENIs == 0
	n.mu.Unlock()
	return unknown || !n.limits().NoPrimary
}

// viewAfter is what the node knows after a look, as others see it.
func (n *Node) viewAfter(err error) cloud.View {
	if err != nil {
		nameError(&err, "Look", n.self.Instance)
		return cloud.View{Err: err}
	}
	return cloud.View{Interfaces: n.Known(), Quarantined: n.Quarantined()}
}

// scan is one describe of many nodes.
type scan struct {
	*Region
	began      time.Time
	nodes      map[string]*Node
	made, here map[string][]driver.Interface // by instance: with its mark, attached to it
	all        map[string]bool               // instances whose unattached ENIs are in made too
}

// describeTogether makes the requests, by the instances or for the whole VPC: what takes fewer.
func (s *scan) describeTogether(ctx context.Context, instances []string) error {
	vpc := s.findVPC(ctx)
	s.mu.Lock()
	pages, everybody := s.pages, len(s.nodes) == len(s.Region.nodes)
	s.mu.Unlock()
	byName := 0
	if s.t.PerScan > 0 {
		byName = 2 * ((len(instances) + s.t.PerScan - 1) / s.t.PerScan)
	}
	switch {
	case byName == 0 && vpc == "":
		return errorf(cloud.ErrUnavailable, "nothing tells which VPC the nodes are in")
	case byName == 0, vpc != "" && (pages > 0 && pages < byName || pages == 0 && everybody && len(instances) > s.t.PerScan):
		return s.wholeVPC(ctx, vpc, instances)
	}
	return s.byInstance(ctx, instances)
}

const (
	mostScans = 3     // how often the pages of a VPC are begun, if one gets lost
	mostPages = 10000 // more than a VPC has
)

// wholeVPC describes all ENIs of the VPC, and remembers how many pages that takes.
func (s *scan) wholeVPC(ctx context.Context, vpc string, instances []string) error {
	for try := 1; ; try++ {
		list, pages, err := s.pagesOf(ctx, driver.Scan{VPC: vpc})
		// Pages can't be continued after a lost one, and half of them would look as if the ENIs of
		// the other half were gone.
		// Pages can't be continued after a lost one, and half of them would look as if the ENIs of
		// the other half were gone.
		if driver.Reason(err) == cloud.PageLost && try < mostScans {
			continue
		}
		if err != nil {
			return err
		}
		for _, i := range list {
			s.made[i.Mark.Instance] = append(s.made[i.Mark.Instance], i)
			s.here[i.Instance] = append(s.here[i.Instance], i)
		}
		for _, id := range instances {
			s.all[id] = true
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pages = pages
		return nil
	}
}

// byInstance describes the ENIs attached to the instances and, as a Node does for itself, those made
// for instances that may have some attached nowhere.
func (s *scan) byInstance(ctx context.Context, instances []string) error {
	want := func(is func(*Node) bool) (ids []string) {
		for _, id := range instances {
			if !s.t.OneNIC && !s.all[id] && is(s.nodes[id]) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	if err := s.madeFor(ctx, want((*Node).wantsUnattached)); err != nil {
		return err
	}
	for part := range slices.Chunk(instances, s.t.PerScan) {
		list, _, err := s.pagesOf(ctx, driver.Scan{Attached: part})
		if err != nil {
			return err
		}
		for _, i := range list {
			s.here[i.Instance] = append(s.here[i.Instance], i)
		}
	}
	// What the requests so far have shown can mean that an ENI was detached since the last look.
	// What the requests so far have shown can mean that an ENI was detached since the last look.
	return s.madeFor(ctx, want(func(n *Node) bool { return n.lacksAttached(s.here[n.self.Instance]) }))
}

func (s *scan) madeFor(ctx context.Context, instances []string) error {
	for part := range slices.Chunk(instances, s.t.PerScan) {
		list, _, err := s.pagesOf(ctx, driver.Scan{Made: part})
		if err != nil {
			return err
		}
		for _, i := range list {
			s.made[i.Mark.Instance] = append(s.made[i.Mark.Instance], i)
		}
		for _, id := range part {
			s.all[id] = true
		}
	}
	return nil
}

// pagesOf returns the ENIs of all pages, each as the last page shows it.
func (s *scan) pagesOf(ctx context.Context, scan driver.Scan) (list []driver.Interface, pages int, err error) {
	at := map[string]int{}
	for {
		page, err := s.self.d.Page(ctx, scan)
		if err != nil {
			return nil, pages, err
		}
		for _, i := range page.Interfaces {
			before, twice := at[i.ID]
			switch {
			case twice && i.ID != "":
				list[before] = i
			case s.nodes[i.Instance] != nil || s.nodes[i.Mark.Instance] != nil: // a VPC may have many more
				at[i.ID] = len(list)
				list = append(list, i)
			}
		}
		switch pages++; {
		case page.Next == "":
			return list, pages, nil
		case pages == mostPages:
			return nil, pages, errorf(cloud.ErrUnavailable, "bad answer: the pages have no end")
		}
		scan.Next = page.Next
	}
}

// acceptViews makes each node's view of what was shown. A node whose view can't be made gets an
// error of its own, and does not keep the others from theirs.
func (s *scan) acceptViews(ctx context.Context, instances []string, views map[string]cloud.View) error {
	raw := map[string][]driver.Interface{}
	var all []driver.Interface
	for _, id := range instances {
		raw[id] = mergeENIs(s.made[id], s.nodes[id].withOwn(s.here[id]))
		all = append(all, raw[id]...)
	}
	// One request for the subnets of all nodes, so that each node finds its own known. No subnet is
	// needed here: what is refused fails only the nodes that need it.
	if _, _, err := s.self.rangesOf(ctx, all, func(driver.Interface) bool { return false }); err != nil {
		return err
	}
	for _, id := range instances {
		n := s.nodes[id]
		self, err := n.findSelf(ctx)
		if err == nil {
			_, err = n.acceptView(ctx, self, raw[id], s.all[id], s.began)
		}
		views[id] = n.viewAfter(err)
	}
	return nil
}

// withOwn adds the node's primary ENI, as it was shown last, where the cloud hides it.
func (n *Node) withOwn(here []driver.Interface) []driver.Interface {
	if !n.t.HidesPrimary {
		return here
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	here = slices.DeleteFunc(here, func(i driver.Interface) bool { return i.ID == n.own.ID })
	return append([]driver.Interface{n.own}, here...)
}
