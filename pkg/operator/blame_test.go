package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// subnetless is a driver that makes no ENI in one subnet.
type subnetless struct {
	driver.Driver
	subnet string
}

func (d subnetless) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	if c.Subnet == d.subnet {
		return driver.Interface{}, &driver.Error{Kind: cloud.ErrUnavailable, Detail: "no host answers"}
	}
	return d.Driver.Create(ctx, c)
}

// What the cloud refuses in one subnet is tried in another one, and what else a node needs goes on.
func TestARefusalInOneSubnetStopsNothingElse(t *testing.T) {
	s := setup{nodes: 1, subnets: []sim.Subnet{{ID: "a", V4: mustPrefix("10.0.0.0/16")}, {ID: "b", V4: mustPrefix("10.1.0.0/24")}}}
	play(t, s, func(ctx context.Context, w *world) {
		w.wrap = func(d driver.Driver) driver.Driver { return subnetless{d, "a"} }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(time.Minute, w.isQuiet)
		w.agents[0].set(16) // more than its primary ENI takes
		if took := w.until(2*time.Minute, w.isQuiet); took > 20*time.Second {
			t.Errorf("served after %s", took)
		}
		if e := w.store.node("node-000").Status.ENIs; len(e) != 2 || e[1].Subnet != "b" {
			t.Errorf("the ENIs: %+v", e)
		}
		w.check()
	})
}

// A node whose calls go over to the operator says what that waits for, and why it lasts.
func TestANodeThatJoinsTellsWhatItWaitsFor(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		a := w.agents[0]
		self := w.Driver("i-node-000", w.traits)
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a.set(6)
		w.until(3*time.Minute, w.isQuiet)
		a.change(crd.Self, nil)
		w.until(3*time.Minute, func() bool { return w.store.node(a.name).Status.Mode == crd.Self })
		w.begunByTheAgent(ctx, self, a)
		w.SetFaults(sim.Chance{Action: sim.ActAttach, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Unavailable}}})
		a.change(crd.Operator, &crd.Handover{Tokens: []string{"begun-1"}})
		reason := func() string {
			s := w.store.node(a.name).Status
			if len(s.Conditions) == 0 || s.Mode != crd.Joining {
				return ""
			}
			return s.Conditions[0].Reason
		}
		w.until(time.Minute, func() bool { return reason() == "JoiningDescribe" })
		w.until(time.Minute, func() bool { return reason() == "JoiningInterface" })
		w.until(2*time.Minute, func() bool { return len(w.store.node(a.name).Status.Causes) > 0 })
		s := w.store.node(a.name).Status
		if s.Causes[0].Reason != "CloudUnavailable" || !strings.Contains(s.Conditions[0].Message, "eni-") {
			t.Errorf("causes %+v, conditions %+v", s.Causes, s.Conditions)
		}
		why, err := w.lead.Why(ctx, a.name)
		w.must(err)
		if text := strings.Join(why.Lines(time.Now()), "\n"); !strings.Contains(text, "\n  that waits for ENI eni-") || strings.Count(text, why.Causes[0].Message) != 1 || !strings.Contains(text, "\n  CloudUnavailable: ") {
			t.Errorf("%s", text)
		}
		w.SetFaults()
		w.until(15*time.Minute, func() bool { return w.store.node(a.name).Status.Mode == crd.Operator })
	})
}

// deaf is a store whose watch does not work any more.
type deaf struct {
	*store
	since time.Time
}

func (d *deaf) Silent() (time.Time, error) {
	if d.since.IsZero() {
		return time.Time{}, nil
	}
	return d.since, errors.New("no role allows it")
}

// An operator that the API server tells of no changes is not well, though nothing else is wrong.
func TestItIsNotHealthyWhenItHearsOfNoChanges(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		d := &deaf{store: w.store}
		w.leadWith(ctx, func(o *operator.Options) { o.Objects = d })
		time.Sleep(time.Minute)
		if err := w.lead.Healthy(); err != nil {
			t.Error(err)
		}
		d.since = time.Now()
		time.Sleep(4 * time.Minute)
		if err := w.lead.Healthy(); err != nil {
			t.Errorf("after four minutes: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if err := w.lead.Healthy(); err == nil || !strings.Contains(err.Error(), "no role allows it") {
			t.Errorf("after six minutes: %v", err)
		}
	})
}

// Where the cloud tells the limits of instances alone, the next leader takes those that the objects have: it asks none of the instances before it
// serves them.
func TestTheNextLeaderKnowsWhatInstancesCarry(t *testing.T) {
	const nodes = 120
	plenty := cloud.Bucket{Burst: 1000, PerSecond: 100}
	s := setup{nodes: nodes, likeBCE: true, buckets: map[string]cloud.Bucket{sim.ActShape: plenty, sim.ActDescribe: plenty, sim.ActSubnets: plenty, sim.ActAssign: plenty, sim.ActCreate: plenty, sim.ActAttach: plenty}, typ: sim.Type{Name: "large", ENIs: 4, V4: 30, V6: 30}}
	play(t, s, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(5*time.Minute, w.isQuiet)
		w.lead.kill()
		before := w.Calls()[sim.ActShape]
		w.leadWith(ctx, nil)
		for _, a := range w.agents {
			a.set(9)
		}
		w.until(5*time.Minute, w.isQuiet)
		if n := w.Calls()[sim.ActShape] - before; n > 0 {
			t.Errorf("%d instances were asked of %d", n, nodes)
		}
		w.check()
	})
}

// One instance of which nothing tells what it carries does not keep others waiting.
func TestOneInstanceWithoutLimitsIsOneNodesAffair(t *testing.T) {
	play(t, setup{nodes: 3, likeBCE: true, typ: sim.Type{Name: "large", ENIs: 4, V4: 30, V6: 30}}, func(ctx context.Context, w *world) {
		w.wrap = func(d driver.Driver) driver.Driver { return shapeless{d, "i-node-001"} }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(2*time.Minute, func() bool {
			return w.store.node("node-000") != nil && w.store.node("node-000").Status.Slots > 0 && w.store.node("node-002").Status.Slots > 0
		})
		w.until(2*time.Minute, func() bool { return len(w.store.node("node-001").Status.Causes) > 0 })
		if c := w.store.node("node-000").Status.Conditions[1]; c.Status != "True" {
			t.Errorf("another node is told: %+v", c)
		}
		if c := w.store.node("node-001").Status.Causes[0]; !strings.Contains(c.Message, "nothing tells") {
			t.Errorf("the cause: %+v", c)
		}
	})
}

// shapeless is a driver that does not tell what one instance carries.
type shapeless struct {
	driver.Driver
	instance string
}

func (d shapeless) Shape(ctx context.Context, s driver.Self) (driver.Shape, error) {
	if s.Instance == d.instance {
		return driver.Shape{}, &driver.Error{Kind: cloud.ErrUnavailable, Detail: "nothing tells"}
	}
	return d.Driver.Shape(ctx, s)
}

// What is wrong with the cloud is put right in the operator's file.
func TestACheckNamesTheFileOfTheOperator(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		time.Sleep(time.Minute)
		w.Refuse(&sim.Error{Reason: sim.Unavailable})
		found, err := w.lead.Check(ctx)
		w.must(err)
		said := ""
		for _, f := range found {
			said += f.Detail + "; " + f.Fix + "\n"
		}
		if strings.Contains(said, "agent.yaml") || !strings.Contains(said, "operator.yaml") {
			t.Error(said)
		}
	})
}

// A node that stays between its agent and the operator for a cause that only a person ends has an event, too.
func TestPeopleAreToldWhyANodeCantJoin(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		bare := w.store.nodes["node-000"]
		bare.Instance = ""
		w.store.nodes["node-000"] = bare
		l := &told{}
		w.leadWith(ctx, l.listen)
		_, err := w.store.put(&crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: "node-000"},
			Spec: crd.NodeNetworkSpec{Mode: crd.Operator, Families: []string{"IPv4"}, Slots: 5, Pool: crd.Pool{Batch: 8}, Handover: &crd.Handover{}}})
		w.must(err)
		time.Sleep(time.Minute)
		if got, mode := l.reasons("NodeNetwork", "node-000"), w.store.node("node-000").Status.Mode; mode != crd.Joining || len(got) != 1 || got[0] != "InstanceUnknown" {
			t.Errorf("mode %s, told %v", mode, got)
		}
	})
}
