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
	{"Unreserve ends what Reserve has made, and who has an address keeps it", endsReservation},
	{"Reserve is ErrForbidden where the cloud keeps no ranges", reservesNever},
	{"Forget drops what is known of an instance", forgetsInstance},
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
				region := newRegion(t, open(t))
				s.holds(region)
				if region.Check != nil {
					if err := region.Check(); err != nil {
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

// settledLook is Look after the lag.
func (r *region) settledLook(instances ...string) map[string]cloud.View {
	r.Helper()
	r.waitForLag()
	views, err := r.Region.Look(r.ctx, instances)
	r.must(err)
	return views
}

// checkShows fails the test unless a view is what the Node shows.
func (r *region) checkShows(v cloud.View, node *node) {
	r.Helper()
	if v.Err != nil || len(v.Quarantined) > 0 {
		r.Errorf("a view of a sound node has %v, %+v", v.Err, v.Quarantined)
	}
	if d := diffENIs(node.settledENIs(), v.Interfaces); d != "" {
		r.Errorf("a view differs from the Node's (-Node +Look):\n%s", d)
	}
}

func nodeIsTheSame(region *region) {
	i := region.eniWith(1)
	again, err := region.Region.Node(cloud.Instance{ID: region.Instances[0]}).Interfaces(region.ctx)
	region.must(err)
	if _, found := findIn(again, func(a cloud.Interface) bool { return a.ID == i.ID }); !found {
		region.Errorf("ENI %s is not one of %+v", i.ID, again)
	}
	if region.Region.Node(cloud.Instance{ID: region.Instances[0]}) != region.Cloud {
		region.Error("there is another Cloud of the same instance")
	}
}

func looksAsNodesDo(region *region) {
	region.eniWith(1)
	region.other.eniWith(2)
	if region.spareENIs() > 1 {
		region.createENI(2)
	}
	views := region.settledLook(region.Instances...)
	region.checkShows(views[region.Instances[0]], region.node)
	region.checkShows(views[region.Instances[1]], region.other)
	if len(views) != 2 {
		region.Errorf("Look at 2 instances returns %d views", len(views))
	}
	alone := region.settledLook(region.Instances[1])
	if region.checkShows(alone[region.Instances[1]], region.other); len(alone) != 1 {
		region.Errorf("Look at an instance returns %d views", len(alone))
	}
}

func looksTogether(region *region) {
	if region.Looks == nil {
		region.Skip("the endpoint lacks a count of describes")
	}
	region.settledLook(region.Instances...) // of what is known of none it may ask more
	before := region.Looks()
	region.settledLook(region.Instances...)
	together := region.Looks() - before
	before = region.Looks()
	for _, id := range region.Instances {
		_, err := region.Region.Node(cloud.Instance{ID: id}).Interfaces(region.ctx)
		region.must(err)
	}
	if alone := region.Looks() - before; together >= alone {
		region.Errorf("two nodes are described by %d requests together, alone by %d", together, alone)
	}
}

func looksAtAll(region *region) {
	views := region.settledLook()
	for at, id := range region.Instances {
		region.checkShows(views[id], []*node{region.node, region.other}[at])
	}
	if len(views) != len(region.Instances) {
		region.Errorf("Look at all returns %d views", len(views))
	}
}

func looksAtNobody(region *region) {
	region.Region.Node(cloud.Instance{ID: region.Nobody})
	views := region.settledLook(region.Nobody, region.Instances[0])
	region.checkShows(views[region.Instances[0]], region.node)
	region.checkKind(views[region.Nobody].Err, cloud.ErrNotFound)
	_, err := region.Region.Look(region.ctx, []string{region.Nobody + "x"})
	region.checkKind(err, cloud.ErrNotFound)
}

func regionSubnets(region *region) {
	region.settledLook()
	list, err := region.Region.Subnets(region.ctx)
	region.must(err)
	var ids []string
	for _, s := range list {
		ids = append(ids, s.ID)
		if s.ID == region.first && (s.Zone == "" || s.New != (region.spareENIs() > 0) || s.Free < 1 || !s.V4Net.IsValid()) {
			region.Errorf("the first subnet is %+v", s)
		}
	}
	if !slices.IsSorted(ids) || !slices.Contains(ids, region.first) {
		region.Errorf("subnets %v lack %s, or are not sorted", ids, region.first)
	}
}

func aliveAreAlive(region *region) {
	states, err := region.Region.Alive(region.ctx, append(slices.Clone(region.Instances), region.Nobody))
	region.must(err)
	if len(states) != 3 || states[region.Nobody] != cloud.Gone {
		region.Errorf("of 2 instances and %s Alive tells %v", region.Nobody, states)
	}
	for _, id := range region.Instances {
		if is := states[id]; is != cloud.Running && is != cloud.Exists {
			region.Errorf("instance %s is %q", id, is)
		}
	}
	none, err := region.Region.Alive(region.ctx, nil)
	region.must(err)
	if len(none) > 0 {
		region.Errorf("of none Alive tells %v", none)
	}
}

func aliveOrStopped(region *region) {
	if region.Stop == nil {
		region.Skip("the endpoint stops no instances")
	}
	for _, stopped := range []bool{true, false} {
		region.must(region.Stop(region.Instances[1], stopped))
		region.waitForLag()
		states, err := region.Region.Alive(region.ctx, region.Instances)
		region.must(err)
		want := map[bool]cloud.State{true: cloud.Stopped, false: cloud.Running}[stopped]
		if states[region.Instances[1]] != want || states[region.Instances[0]] != cloud.Running {
			region.Errorf("with %s %s Alive tells %v", region.Instances[1], want, states)
		}
	}
}

func forgetsInstance(region *region) {
	region.Region.Forget(region.Instances[0])
	_, err := region.Region.Look(region.ctx, region.Instances[:1])
	region.checkKind(err, cloud.ErrNotFound)
	if region.Region.Node(cloud.Instance{ID: region.Instances[0]}) == region.Cloud {
		region.Error("what was forgotten is there again")
	}
	region.checkShows(region.settledLook(region.Instances[0])[region.Instances[0]], region.node)
}
