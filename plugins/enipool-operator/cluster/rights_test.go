package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// right is one thing that a role allows.
type right struct {
	group, resource, verb string
	names                 []string // of the objects, none for all
	inNamespace           bool
}

func (r right) String() string { return r.verb + " " + r.resource }

func (r right) rule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}, ResourceNames: r.names}
}

// rightsIn returns what the roles of a file allow.
func rightsIn(t *testing.T, path string) (list []right) {
	t.Helper()
	text, err := os.ReadFile("../../../conf/kubernetes/" + path)
	must(t, err)
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var role rbacv1.ClusterRole // a Role has the same rules
		must(t, yaml.Unmarshal([]byte(doc), &role))
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					list = append(list, right{rule.APIGroups[0], resource, verb, rule.ResourceNames, role.Kind == "Role"})
				}
			}
		}
	}
	return list
}

// bed is a real API server on which several users do the same, each with other rights.
type bed struct {
	*testing.T
	config *rest.Config
	admin  *kubernetes.Clientset
	kinds  client.Client
}

// user is one of them. Its node, subnet and namespace have its name.
type user struct {
	name   string
	config *rest.Config
	mu     sync.Mutex
	denied string // the first answer that something is forbidden
	end    context.CancelFunc
}

// RoundTrip notes what is forbidden, after which the user's work ends.
func (u *user) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil && answer.StatusCode == http.StatusForbidden {
			text, _ := io.ReadAll(answer.Body)
			answer.Body = io.NopCloser(bytes.NewReader(text))
			u.mu.Lock()
			if u.denied == "" {
				u.denied = string(text)
			}
			u.mu.Unlock()
			u.end()
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// addUser makes a user with the rights, and what it works on, and waits until the rights count.
func (b *bed) addUser(name string, may []right) *user {
	b.Helper()
	ctx := context.Background()
	_, err := b.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(b.T, err)
	meta := metav1.ObjectMeta{Name: name}
	all, some := &rbacv1.ClusterRole{ObjectMeta: meta}, &rbacv1.Role{ObjectMeta: meta}
	subject := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	for _, r := range may {
		if r.inNamespace {
			some.Rules = append(some.Rules, r.rule())
		} else {
			all.Rules = append(all.Rules, r.rule())
		}
	}
	_, err = b.admin.RbacV1().ClusterRoles().Create(ctx, all, metav1.CreateOptions{})
	must(b.T, err)
	_, err = b.admin.RbacV1().Roles(name).Create(ctx, some, metav1.CreateOptions{})
	must(b.T, err)
	_, err = b.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}, metav1.CreateOptions{})
	must(b.T, err)
	_, err = b.admin.RbacV1().RoleBindings(name).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, metav1.CreateOptions{})
	must(b.T, err)
	for _, is := range []bool{false, true} {
		if i := slices.IndexFunc(may, func(r right) bool { return r.inNamespace == is }); i >= 0 {
			b.awaitRight(name, may[i])
		}
	}
	_, err = b.admin.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: meta}, metav1.CreateOptions{})
	must(b.T, err)
	u := &user{name: name, config: rest.CopyConfig(b.config)}
	u.config.Impersonate = rest.ImpersonationConfig{UserName: name}
	u.config.Wrap(u.through)
	return u
}

// awaitRight waits until the API server knows of a user's role.
func (b *bed) awaitRight(name string, r right) {
	b.Helper()
	resource, sub, _ := strings.Cut(r.resource, "/")
	ask := &authv1.SubjectAccessReview{Spec: authv1.SubjectAccessReviewSpec{User: name,
		ResourceAttributes: &authv1.ResourceAttributes{Namespace: name, Group: r.group, Resource: resource, Subresource: sub, Verb: r.verb, Name: strings.Join(r.names, "")}}}
	soon(b.T, name+" may "+r.String(), func() error {
		answer, err := b.admin.AuthorizationV1().SubjectAccessReviews().Create(context.Background(), ask, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = errors.New("not yet")
		}
		return err
	})
}

// eachIsNeeded lets users do the work, one with all rights and for each one another that lacks it: the first gets to the end, and
// the others are told what they lack.
func (b *bed) eachIsNeeded(prefix string, rights, more []right, work func(context.Context, *user) error) {
	var all sync.WaitGroup
	try := func(i int) {
		missing, may := right{}, slices.Clone(rights)
		if i >= 0 {
			missing, may = rights[i], slices.Delete(may, i, i+1)
		}
		u := b.addUser(fmt.Sprintf("%s-%d", prefix, i+1), append(may, more...))
		var ctx context.Context
		ctx, u.end = context.WithTimeout(context.Background(), time.Minute)
		all.Go(func() {
			defer u.end()
			err := work(ctx, u)
			u.mu.Lock()
			defer u.mu.Unlock()
			verb, resource := fmt.Sprintf("cannot %s resource", missing.verb), strings.Split(missing.resource, "/")[0]
			switch {
			case i < 0 && (err != nil || u.denied != ""):
				b.Errorf("with all rights: %v, %s", err, u.denied)
			case i >= 0 && u.denied == "":
				b.Errorf("nothing fails without the right to %s: %v", missing, err)
			case i >= 0 && (!strings.Contains(u.denied, verb) || !strings.Contains(u.denied, resource)):
				b.Errorf("without the right to %s: %s", missing, u.denied)
			}
		})
	}
	for i := -1; i < len(rights); i++ {
		try(i)
	}
	all.Wait()
}

// Each right of the operator's role, and of the one that agents have with an operator, is needed for what they do.
func eachRightIsNeeded(t *testing.T, config *rest.Config) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 500, 500
	o, err := New(config, slog.New(slog.DiscardHandler))
	must(t, err)
	set, err := kubernetes.NewForConfig(config)
	must(t, err)
	b := &bed{t, config, set, o.client}
	b.eachIsNeeded("operator", rightsIn(t, "operator/account.yaml"), nil, b.operate)
	needed, more := topologyRights(t)
	b.eachIsNeeded("topologies", needed, more, b.classify)
	b.eachIsNeeded("agent", rightsIn(t, "crds/agents.yaml"), rightsIn(t, "base/account.yaml"), b.serve)
}

// operate does what an operator does.
func (b *bed) operate(ctx context.Context, u *user) error {
	o, err := New(u.config, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	n := &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: u.name, Finalizers: []string{operator.Finalizer}}, Spec: crd.NodeNetworkSpec{Mode: crd.Operator}}
	if err := b.kinds.Create(ctx, n); err != nil {
		return err
	}
	if _, err := o.ReadAll(ctx); err != nil {
		return err
	}
	s, err := o.CreateSubnet(ctx, &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: u.name}, Spec: crd.SubnetSpec{Use: "Shared"}})
	if err != nil {
		return err
	}
	if _, err := o.WriteSubnet(ctx, s); err != nil {
		return err
	}
	if n, err = o.ReadNode(ctx, u.name); err != nil {
		return err
	}
	if n, err = o.WriteNode(ctx, n); err != nil {
		return err
	}
	if err := o.DropFinalizer(ctx, n); err != nil {
		return err
	}
	if err := watchAll(ctx, o); err != nil {
		return err
	}
	if err := b.tellTwice(ctx, u); err != nil {
		return err
	}
	return lead(ctx, u)
}

// tellTwice tells people the same twice: the second event is counted in the first.
func (b *bed) tellTwice(ctx context.Context, u *user) error {
	events, err := NewEvents(u.config)
	if err != nil {
		return err
	}
	defer events.Close()
	for range 2 {
		events.Tell(operator.Notice{Kind: "Subnet", Name: u.name, UID: u.name, Reason: "SubnetFull", Message: "it has no address left"})
	}
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		list, err := b.admin.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + u.name})
		if err == nil && slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Count == 2 }) {
			return nil
		}
	}
	return ctx.Err()
}

// watchAll watches until there was something of each kind.
func watchAll(ctx context.Context, o *Objects) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	told := map[string]bool{}
	o.Watch(watching, func(e operator.Event) {
		mu.Lock()
		defer mu.Unlock()
		told[fmt.Sprint(e.Node != nil, e.Network != nil, e.Subnet != nil)] = true
		if len(told) == 3 {
			stop()
		}
	})
	return ctx.Err()
}

// lead leads for a moment.
func lead(ctx context.Context, u *user) error {
	set, err := kubernetes.NewForConfig(u.config)
	if err != nil {
		return err
	}
	// That the others here hold leases keeps nobody from leading: each is a user of its own.
	if _, err := ListLeases(set.CoordinationV1(), "enipool-operator")(ctx); err != nil {
		return err
	}
	leading, stop := context.WithCancel(ctx)
	defer stop()
	e := Election{Client: set.CoordinationV1(), Namespace: u.name, Name: "enipool-operator", Identity: "one", Duration: 15 * time.Second, Log: slog.New(slog.DiscardHandler)}
	err = e.Run(leading, func(ctx context.Context, l operator.Lead) error {
		defer stop()
		return l.Number(ctx, 1)
	})
	return errors.Join(err, ctx.Err())
}

// serve does what an agent does with the object of its node.
func (b *bed) serve(ctx context.Context, u *user) error {
	n, err := kube.New(kube.Options{Node: u.name, Config: u.config})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- n.Run(running) }()
	defer func() {
		stop()
		<-ended
	}()
	object := n.Object()
	await := func(so func(order.Object) bool) (order.Object, error) {
		for ctx.Err() == nil {
			if is, read := object.Newest(); read && so(is) {
				return is, nil
			}
			select {
			case <-ctx.Done():
			case <-object.Changed():
			}
		}
		return order.Object{}, ctx.Err()
	}
	spec := order.Spec{Mode: order.Operator, Families: []eni.Family{eni.IPv4}, Slots: 16, Pool: pool.Config{Multiple: 1, Scale: scale.Config{Batch: 16}}}
	is, err := await(func(order.Object) bool { return true })
	for err == nil && is.Version == "" {
		if _, wrong := object.Write(ctx, is, spec, order.Asks{}); wrong != nil {
			time.Sleep(10 * time.Millisecond) // until the Node is known
		}
		is, err = await(func(order.Object) bool { return true })
	}
	if err != nil {
		return err
	}
	spec.Slots = 32
	if is, err = object.Write(ctx, is, spec, order.Asks{}); err != nil {
		return err
	}
	var written crd.NodeNetwork
	if err := b.kinds.Get(ctx, client.ObjectKey{Name: u.name}, &written); err != nil {
		return err
	}
	written.Status.Revision = 7
	if err := b.kinds.Status().Update(ctx, &written); err != nil {
		return err
	}
	_, err = await(func(o order.Object) bool { return o.Status.Revision == 7 })
	return err
}
