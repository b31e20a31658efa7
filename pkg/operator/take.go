package operator

import (
	"cmp"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// takeAll begins with all objects.
func (t *term) takeAll(all Cluster) {
	t.looks.all = t.o.Lease.Settle
	for _, n := range all.Nodes {
		t.takeEvent(Event{Node: &n})
	}
	t.zones.noteAll()
	for _, s := range all.Subnets {
		t.takeEvent(Event{Subnet: s})
	}
	// Of two that name one instance the one comes first that was served last.
	served := func(n *crd.NodeNetwork) bool {
		return n.Status.Instance != "" && n.Status.Instance == t.nodes[n.Name].Instance
	}
	slices.SortFunc(all.Networks, func(a, b *crd.NodeNetwork) int {
		if served(a) != served(b) && served(a) {
			return -1
		} else if served(a) != served(b) {
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	for _, n := range all.Networks {
		t.takeEvent(Event{Network: n})
	}
}

// takeEvent takes in a change. It may come late or twice.
func (t *term) takeEvent(change Event) {
	switch {
	case change.Node != nil && change.Deleted:
		delete(t.nodes, change.Node.Name)
		t.dropGuest(change.Node.Name)
		t.cutOff(change.Node.Name)
	case change.Node != nil:
		is := *change.Node
		is.Zone = t.zoneName(is.Zone)
		// Most of what a Node tells is how it is doing.
		if before, known := t.nodes[is.Name]; !known || !before.isSame(is) {
			t.nodes[is.Name] = is
			t.zones.noteNode(is.Zone, is)
			t.takeNode(change.Node.Name)
		}
	case change.Subnet != nil:
		t.takeSubnet(change.Subnet, change.Deleted)
	case change.Network != nil && change.Deleted:
		if node := t.members[change.Network.Name]; node != nil {
			node.loseObject(change.Network)
			t.dirty[change.Network.Name] = true
		}
	case change.Network != nil:
		t.takeNetwork(change.Network)
	}
}

// cutOff takes in that the Node of an object has gone. The object goes soon, or stays if it came from a backup without its owner.
func (t *term) cutOff(name string) {
	if node := t.members[name]; node != nil {
		node.node.Cut = true
		if t.dirty[name] = true; node.network != nil {
			node.readView()
		}
	}
}

// takeNetwork takes in a copy of an object, unless a newer one is known.
func (t *term) takeNetwork(copied *crd.NodeNetwork) {
	node := t.members[copied.Name]
	if node != nil && node.network != nil && node.network.UID == copied.UID {
		if !isNewer(copied, node.network) {
			t.noteOlder(node, copied)
			return
		}
		if isPutBack(copied, node.network) {
			node.notePutBack(copied)
		}
	}
	t.dirty[copied.Name] = true
	if node == nil {
		t.dropGuest(copied.Name)
		node = newMember(t.nodeFor(copied), order.NewTerm(t.o.Lease, t.epoch, 0))
		t.followEnded(node)
		if was := copied.Status.Instance; was != node.node.Instance {
			node.former = was
		}
		t.members[copied.Name] = node
		node.takeCopy(copied)
		node.recallLimits(copied)
		t.enterRegion(node)
		return
	}
	if node.network == nil || node.network.UID != copied.UID {
		// Calls for the object before may be under way: another member comes when they have ended.
		node.left, node.next = true, copied
		return
	}
	if node.takeCopy(copied); node.next != nil && node.next.UID == copied.UID {
		node.next = copied // the object stays, and its Node has another instance
	}
}

// loseObject takes in that an object is no more: the member's, or what was to come after it.
func (m *member) loseObject(gone *crd.NodeNetwork) {
	if m.network != nil && m.network.UID == gone.UID {
		m.network, m.left = nil, true
	}
	if m.next != nil && m.next.UID == gone.UID {
		m.next = nil
	}
}

// nodeFor returns the Node that an object is of. One that has gone before its object has the instance that it was served for.
func (t *term) nodeFor(n *crd.NodeNetwork) Node {
	node, known := t.nodes[n.Name]
	if !known && n.DeletionTimestamp != nil {
		node.Instance, node.Type, node.Zone = n.Status.Instance, n.Status.InstanceType, t.zoneName(n.Status.Zone)
	}
	node.Name, node.Cut = n.Name, node.Cut || !known
	return node
}

// enterRegion makes the engine know the node, and which ENI an operator before may have begun.
func (t *term) enterRegion(node *member) {
	if node.node.Instance == "" {
		return
	}
	tokens := []string{order.Token(string(node.network.UID), node.network.Status.Created)}
	tokens = append(tokens, handoverOf(node.network).Tokens...)
	// Two that call for one instance would have each other's addresses. Who had it first keeps it, and the other one waits.
	if holder := t.claims[node.node.Instance]; holder != nil && holder != node {
		node.rival, node.node.Instance = holder.node.Name, ""
		return
	}
	node.rival, t.claims[node.node.Instance] = "", node
	delete(t.leavers.of, node.node.Instance)
	node.client = t.o.Region.Node(cloud.Instance{ID: node.node.Instance, Type: node.node.Type, Zone: node.node.Zone})
	node.client.Recall(cloud.Notes{Begun: tokens, Limits: node.limits})
}

// takeNode takes in what a Node says. With another instance it is another node.
func (t *term) takeNode(name string) {
	node := t.members[name]
	if node == nil {
		t.takeGuest(name)
		return
	}
	was := node.node
	before := was.Instance
	node.node = t.nodes[name]
	if t.dirty[name] = true; node.network != nil {
		node.readView()
	}
	switch {
	case before == node.node.Instance:
		t.takeType(node, was.Type)
	case before == "":
		node.recallLimits(node.network)
		t.enterRegion(node)
	default:
		if node.node.Instance = before; !node.left { // else it is known what comes next
			node.left, node.next = true, node.network
		}
	}
}

// takeType takes in that the instance has another type than before, as after a stop: what it can carry is asked anew. Calls that are under way go on.
func (t *term) takeType(node *member, before string) {
	switch {
	case node.node.Type == "":
		node.node.Type = before
	case before != "" && node.node.Type != before && node.client != nil:
		t.o.Region.Node(instanceOf(node))
		node.limits, node.recalled, node.unlimited, node.noLimits = eni.Limits{}, false, absence{}, nil
	}
}

// replaceMember ends a member whose object or instance is another one now, and begins with what there is.
func (t *term) replaceMember(name string, node *member) {
	t.o.Gate.setFresh(name, nil)
	// A describe that is under way must find it still, or it fails for all.
	if node.isBusy() || node.writing || node.client != nil && t.looks.under {
		return
	}
	delete(t.members, name)
	t.noteEnded(name, node)
	if node.client != nil {
		t.noteLeaver(node.node.Instance)
		t.o.Region.Forget(node.node.Instance)
		delete(t.claims, node.node.Instance)
	}
	t.tally.exchange(node, nil)
	t.note(name, nil, t.now())
	t.noteClaimNode(name, nil)
	if node.next != nil {
		t.takeNetwork(node.next)
	}
	for other, n := range t.nodes {
		if node.client != nil && n.Instance == node.node.Instance {
			t.takeNode(other) // it may have waited for the instance
		}
	}
	t.takeGuest(name)
}

// isNewer tells whether a copy is newer than another of the same object: resourceVersions of one kind are ordered.
func isNewer(a, b *crd.NodeNetwork) bool {
	x, y := a.ResourceVersion, b.ResourceVersion
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) > 0
}
