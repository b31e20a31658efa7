package cloudtest

import (
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// RegionSubject is a cloud.Region under test, and what the suite may know besides.
type RegionSubject struct {
	Region    cloud.Region
	Instances []string      // two fresh ones with their own ENI alone, of one zone
	Nobody    string        // what could be the ID of an instance, and is none
	Type      string        // of the instances, "" where it is no matter of limits
	Subnets   []string      // IDs of those in which new ENIs may lie; the first has room for all of them
	Lag       time.Duration // age of what answers show, at most

	// What an endpoint can't tell is nil; sentences that need it are skipped.
	Types func() int                                // requests so far that describe instance types
	Looks func() int                                // requests so far that describe ENIs
	Stop  func(instance string, stopped bool) error // stops an instance, or starts it again
	Check func() error                              // called at the end: what is wrong inside
}

// regionSentence is a sentence of the contract as a test.
type regionSentence struct {
	name  string
	holds func(*region)
}

// regional is what the comments of cloud.Region say.
var regional = []regionSentence{
	{"Node returns the Cloud of an instance, the same each time", nodeIsTheSame},
	{"Look returns a View of each instance, as its Node shows it", looksAsNodesDo},
	{"Look describes instances together", looksTogether},
	{"Look is of all Nodes where it is given no instance", looksAtAll},
	{"a View tells that an instance has no ENI", looksAtNobody},
	{"List shows the ENIs of all instances, and those that are attached nowhere", listsAll},
	{"List ends with an error of its caller", listEnds},
	{"Subnets returns those that new ENIs may lie in", regionSubnets},
	{"Limits returns what instances of the types may carry", limitsOfTypes},
	{"Limits leaves out a type that the cloud does not have", limitsOfNoType},
	{"Limits tells of several types in one request", limitsTogether},
	{"Limits is ErrForbidden where the cloud tells the limits of instances alone", limitsOfInstances},
	{"Alive tells no instance Gone that exists", aliveAreAlive},
	{"Alive tells an instance that was stopped from one that runs", aliveOrStopped},
	{"AssignExactly puts these addresses on the ENI", exactAddresses},
	{"AssignExactly finds those fine that the ENI has", exactAgain},
	{"AssignExactly of one that is not free is ErrTaken, and returns the others", exactTaken},
	{"AssignExactly of one out of the subnet is ErrForbidden, and puts none", exactOutside},
	{"AssignExactly on another instance's ENI is ErrNotFound", exactElsewhere},
	{"AssignExactly is ErrForbidden where the cloud takes no address by name", exactNever},
	{"AssignExactly moves what another ENI has from there", exactMoves},
	{"AssignExactly takes an address from no other ENI", exactMovesNoOther},
	{"AssignExactly from another ENI is ErrForbidden where the cloud can't", exactMovesNever},
	{"AssignExactly of another subnet's addresses is ErrForbidden where the cloud can't", exactOtherSubnet},
	{"AssignExactly puts another subnet's addresses on the ENI where the cloud can", exactCrossSubnet},
	{"Reserve keeps a range for AssignExactly", reservesForNames},
	{"Reserve of a range that overlaps a reserved one is ErrTaken", reservesOnce},
	{"Reserve of what is no range of the subnet is ErrForbidden", reservesNoneOutside},
	{"Unreserve ends what Reserve has made, and who has an address keeps it", unreserves},
	{"Reserve is ErrForbidden where the cloud keeps no ranges", reservesNever},
	{"Forget drops what is known of an instance", forgets},
}

// RegionContract runs the suite: every sentence of cloud.Region's comments as a subtest on a
// subject of its own, which open makes.
func RegionContract(t *testing.T, open func(t *testing.T) RegionSubject) {
	RegionContractIn(t, func(t *testing.T, f func(*testing.T)) { f(t) }, open)
}

// RegionContractIn is RegionContract with each subtest inside of what in calls it in, such as
// synctest.Test.
func RegionContractIn(t *testing.T, in func(*testing.T, func(*testing.T)), open func(t *testing.T) RegionSubject) {
	for _, s := range regional {
		t.Run(s.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				r := newRegion(t, open(t))
				s.holds(r)
				if r.Check != nil {
					if err := r.Check(); err != nil {
						t.Errorf("at the end the cloud itself is wrong:\n%v", err)
					}
				}
			})
		})
	}
}

// region is the subject in one subtest: two nodes of the other suite, of one Region.
type region struct {
	*node
	RegionSubject
	other *node
}

func newRegion(t *testing.T, s RegionSubject) *region {
	t.Helper()
	of := func(instance string) *node {
		return newNode(t, Subject{Cloud: s.Region.Node(cloud.Instance{ID: instance}), Subnets: s.Subnets, Lag: s.Lag})
	}
	return &region{node: of(s.Instances[0]), RegionSubject: s, other: of(s.Instances[1])}
}

// look is Look when answers have settled.
func (r *region) look(instances ...string) map[string]cloud.View {
	r.Helper()
	r.settle()
	views, err := r.Region.Look(r.ctx, instances)
	r.must(err)
	return views
}

// shows fails the test unless a view is what the Node shows.
func (r *region) shows(v cloud.View, n *node) {
	r.Helper()
	if v.Err != nil || len(v.Quarantined) > 0 {
		r.Errorf("a view of a sound node has %v, %+v", v.Err, v.Quarantined)
	}
	if d := diffENIs(n.see(), v.Interfaces); d != "" {
		r.Errorf("a view differs from the Node's (-Node +Look):\n%s", d)
	}
}

func nodeIsTheSame(r *region) {
	i := r.carrier(1)
	again, err := r.Region.Node(cloud.Instance{ID: r.Instances[0]}).Interfaces(r.ctx)
	r.must(err)
	if _, found := find(again, func(a cloud.Interface) bool { return a.ID == i.ID }); !found {
		r.Errorf("ENI %s is not one of %+v", i.ID, again)
	}
	if r.Region.Node(cloud.Instance{ID: r.Instances[0]}) != r.Cloud {
		r.Error("there is another Cloud of the same instance")
	}
}

func looksAsNodesDo(r *region) {
	r.carrier(1)
	r.other.carrier(2)
	if r.spare() > 1 {
		r.create(2)
	}
	views := r.look(r.Instances...)
	r.shows(views[r.Instances[0]], r.node)
	r.shows(views[r.Instances[1]], r.other)
	if len(views) != 2 {
		r.Errorf("Look at 2 instances returns %d views", len(views))
	}
	alone := r.look(r.Instances[1])
	if r.shows(alone[r.Instances[1]], r.other); len(alone) != 1 {
		r.Errorf("Look at an instance returns %d views", len(alone))
	}
}

func looksTogether(r *region) {
	if r.Looks == nil {
		r.Skip("the endpoint lacks a count of describes")
	}
	r.look(r.Instances...) // of what is known of none it may ask more
	before := r.Looks()
	r.look(r.Instances...)
	together := r.Looks() - before
	before = r.Looks()
	for _, id := range r.Instances {
		_, err := r.Region.Node(cloud.Instance{ID: id}).Interfaces(r.ctx)
		r.must(err)
	}
	if alone := r.Looks() - before; together >= alone {
		r.Errorf("two nodes are described by %d requests together, alone by %d", together, alone)
	}
}

func looksAtAll(r *region) {
	views := r.look()
	for at, id := range r.Instances {
		r.shows(views[id], []*node{r.node, r.other}[at])
	}
	if len(views) != len(r.Instances) {
		r.Errorf("Look at all returns %d views", len(views))
	}
}

func looksAtNobody(r *region) {
	r.Region.Node(cloud.Instance{ID: r.Nobody})
	views := r.look(r.Nobody, r.Instances[0])
	r.shows(views[r.Instances[0]], r.node)
	r.is(views[r.Nobody].Err, cloud.ErrNotFound)
	_, err := r.Region.Look(r.ctx, []string{r.Nobody + "x"})
	r.is(err, cloud.ErrNotFound)
}

func regionSubnets(r *region) {
	r.look()
	list, err := r.Region.Subnets(r.ctx)
	r.must(err)
	var ids []string
	for _, s := range list {
		ids = append(ids, s.ID)
		if s.ID == r.first && (s.Zone == "" || s.New != (r.spare() > 0) || s.Free < 1 || !s.V4Net.IsValid()) {
			r.Errorf("the first subnet is %+v", s)
		}
	}
	if !slices.IsSorted(ids) || !slices.Contains(ids, r.first) {
		r.Errorf("subnets %v lack %s, or are not sorted", ids, r.first)
	}
}

func aliveAreAlive(r *region) {
	states, err := r.Region.Alive(r.ctx, append(slices.Clone(r.Instances), r.Nobody))
	r.must(err)
	if len(states) != 3 || states[r.Nobody] != cloud.Gone {
		r.Errorf("of 2 instances and %s Alive tells %v", r.Nobody, states)
	}
	for _, id := range r.Instances {
		if is := states[id]; is != cloud.Running && is != cloud.Exists {
			r.Errorf("instance %s is %q", id, is)
		}
	}
	none, err := r.Region.Alive(r.ctx, nil)
	r.must(err)
	if len(none) > 0 {
		r.Errorf("of none Alive tells %v", none)
	}
}

func aliveOrStopped(r *region) {
	if r.Stop == nil {
		r.Skip("the endpoint stops no instances")
	}
	for _, stopped := range []bool{true, false} {
		r.must(r.Stop(r.Instances[1], stopped))
		r.settle()
		states, err := r.Region.Alive(r.ctx, r.Instances)
		r.must(err)
		want := map[bool]cloud.State{true: cloud.Stopped, false: cloud.Running}[stopped]
		if states[r.Instances[1]] != want || states[r.Instances[0]] != cloud.Running {
			r.Errorf("with %s %s Alive tells %v", r.Instances[1], want, states)
		}
	}
}

func forgets(r *region) {
	r.Region.Forget(r.Instances[0])
	_, err := r.Region.Look(r.ctx, r.Instances[:1])
	r.is(err, cloud.ErrNotFound)
	if r.Region.Node(cloud.Instance{ID: r.Instances[0]}) == r.Cloud {
		r.Error("what was forgotten is there again")
	}
	r.shows(r.look(r.Instances[0])[r.Instances[0]], r.node)
}
