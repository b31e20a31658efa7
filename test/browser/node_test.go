package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/pkg/status/web"
)

var shots = flag.String("shots", "", "folder for pictures of what is tested, to look at; none without it")

// views are the widths of a phone, a tablet and a desk, each in both themes.
func views() (list []View) {
	for _, width := range []int{360, 768, 1440} {
		list = append(list, View{Width: width}, View{Width: width, Dark: true})
	}
	return list
}

func (v View) String() string {
	theme := "light"
	if v.Dark {
		theme = "dark"
	}
	return fmt.Sprintf("%d-%s", v.Width, theme)
}

// uptime is how long the tests' node has been up.
const uptime = 5 * time.Hour

// pool is a node of ENIs that carry that many addresses each, of every state.
func pool(enis, perENI int) *ipam.State {
	s := &ipam.State{Settings: ipam.Settings{CoolDown: 30 * time.Second, Families: []eni.Family{eni.IPv4}}}
	for i := range enis {
		s.ENIs = append(s.ENIs, eni.Interface{ID: fmt.Sprintf("eni-0f3a91c2d4e5b6a7%d", i), Index: i, Device: fmt.Sprintf("eth%d", i)})
		for k := range perENI {
			a := eni.Address{Addr: netip.AddrFrom4([4]byte{10, 0, byte(i*8 + k/250), byte(k%250 + 2)}), ENI: i, State: eni.Free, Since: time.Hour}
			switch {
			case k < perENI*2/3:
				a.State, a.Owner = eni.Used, &eni.Owner{Key: eni.Key{Container: "c"}, Namespace: "shop", Pod: fmt.Sprintf("checkout-6d5f8c7b9-%05d", k)}
				a.Lost = k == 7
			case k == perENI-1:
				a.State, a.Since = eni.Cooling, uptime-10*time.Second
			case k == perENI-2:
				a.State = eni.Releasing
			case k == perENI-3:
				a.State, a.HeldBy = eni.Held, "eth0 inet 10.0.0.9/32"
			case k == perENI-4:
				a.State, a.Reservation = eni.Reserved, &eni.Reservation{Topology: "db", Namespace: "shop", Pod: "db-0"}
			}
			s.Addresses = append(s.Addresses, a)
		}
	}
	return s
}

func reads(s *ipam.State) web.ReadPool {
	return func(context.Context) (*ipam.State, time.Duration, error) { return s, uptime, nil }
}

// ready is a status of a node on which all is well.
func ready() status.Status {
	return status.Status{Node: "ip-10-0-1-23.eu-west-1.compute.internal", Written: time.Now(), Due: time.Now().Add(time.Minute), Mode: "batch", Strategy: "equation",
		Demand: 162, Need: 176, Target: 176, Reason: "steady", Most: 245, MaxPods: 250, MaxPodsSource: "kubelet", ENIs: 5, ENILimit: 8, Ready: true, Watched: true, Synced: true, Pods: 160,
		Addresses: status.Addresses{Attached: 250, Used: 160, Free: 70}}
}

// short is a status of a node whose subnet is full.
func short() status.Status {
	s := ready()
	s.Ready, s.Demand, s.Need, s.PendingADDs = false, 190, 208, 12
	s.Problem = "subnet-0a1b2c3d4e5f60718 has no free address; name another subnet of the node's zone in cloud.subnets or cloud.subnetTags, or delete what else uses addresses there"
	s.Causes = []status.Cause{{Kind: "subnet-full", What: s.Problem, Next: time.Now().Add(time.Hour)}, {Kind: "throttled", What: "the cloud wants fewer calls"}}
	s.InFlight = []string{"assign 16 addresses to eni-0f3a91c2d4e5b6a71 for 2s"}
	s.Backoff = []string{"new ENIs in subnet-0a1b2c3d4e5f60718 for 40s: InsufficientFreeAddressesInSubnet: The specified subnet does not have enough free addresses"}
	return s
}

func metricsOf(s status.Status) *web.Metrics {
	m := web.New("v1.2.3")
	for i := range 40 {
		m.Step(status.Step{Action: "assign", Object: fmt.Sprintf("eni-0f3a91c2d4e5b6a7%d", i%5), Count: 16, Reason: fmt.Sprintf("demand needs %d slots and the node has %d", 20+i, i)})
	}
	m.Step(status.Step{Action: "release", Object: "eni-0f3a91c2d4e5b6a74", Count: 3, Reason: "target went down", Failed: "write node cache: no space left on device"})
	m.Observe(s)
	return m
}

func serve(t *testing.T, m *web.Metrics, p web.ReadPool) string {
	t.Helper()
	s := httptest.NewServer(m.Handler(p, false))
	t.Cleanup(s.Close)
	return s.URL + "/"
}

// check finds what no page may have, and takes a picture.
func check(t *testing.T, tab *Tab, name string) {
	t.Helper()
	if *shots != "" {
		tab.Save(filepath.Join(*shots, name+".png"))
	}
	if wide := tab.Eval(`[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + .5 && !e.closest('.scroll')).map(e => e.outerHTML.slice(0, 80)).join('; ')`); wide != "" {
		t.Errorf("%s: wider than the window: %s", name, wide)
	}
	// A phone shows a page that is too wide smaller: its inner width grows then.
	if got := tab.Eval(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`); got != "true" {
		t.Errorf("%s: it scrolls to the side", name)
	}
	for _, c := range tab.Errors() {
		t.Errorf("%s: the browser says %s", name, c)
	}
}

func TestTheNodesPageAtEachWidthInBothThemes(t *testing.T) {
	c := Start(t)
	for _, tt := range []struct {
		name  string
		m     *web.Metrics
		pool  web.ReadPool
		title string
		says  []string
		cells int
	}{
		{"ready", metricsOf(ready()), reads(pool(5, 50)), "Ready", []string{"nothing is wrong"}, 250},
		{"short", metricsOf(short()), reads(pool(5, 50)), "Not ready", []string{"name another subnet", "Next try in ", "Also the cloud wants fewer calls"}, 250},
		{"starting", web.New("v1.2.3"), nil, "Starting", []string{"no tick yet"}, 0},
		{"nocache", metricsOf(ready()), func(context.Context) (*ipam.State, time.Duration, error) {
			return nil, 0, errors.New("read /run/enipool/node.cache: it is missing")
		}, "Ready", nil, 0},
		{"prefixes", metricsOf(ready()), reads(pool(8, 500)), "Ready", nil, 1000},
	} {
		url := serve(t, tt.m, tt.pool)
		for _, v := range views() {
			name := "node-" + tt.name + "-" + v.String()
			tab := c.Open(url, v)
			if got := tab.Text("#banner strong"); got != tt.title {
				t.Errorf("%s: the banner says %q, want %q", name, got, tt.title)
			}
			for _, want := range tt.says {
				if got := tab.Text("#banner"); !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
					t.Errorf("%s: the banner says %q, not %q", name, got, want)
				}
			}
			if got := tab.Eval(`String(document.querySelectorAll('.cells i').length)`); got != fmt.Sprint(tt.cells) {
				t.Errorf("%s: %s cells, want %d", name, got, tt.cells)
			}
			check(t, tab, name)
			tab.Close()
		}
	}
}

// A colour is never all that tells a cell: it has a letter and a text, and both are in the legend.
func TestACellIsToldByItsLetterAndText(t *testing.T) {
	tab := Start(t).Open(serve(t, metricsOf(ready()), reads(pool(1, 30))), View{Width: 768})
	cells := tab.Eval(`[...document.querySelectorAll('.cells i')].map(c => c.textContent).join('')`)
	if want := "UUUUUUULUUUUUUUUUUUUFFFFFFKHRC"; cells != want {
		t.Errorf("cells %s, want %s", cells, want)
	}
	if missing := tab.Eval(`[...document.querySelectorAll('.cells i')].map(c => c.textContent).filter(l => ![...document.querySelectorAll('.key i')].some(k => k.textContent === l)).join('')`); missing != "" {
		t.Errorf("the legend lacks %s", missing)
	}
	if got, want := tab.Eval(`document.querySelectorAll('.cells i')[1].title`), "10.0.0.3 used shop/checkout-6d5f8c7b9-00001 for 4h0m0s"; got != want {
		t.Errorf("title %q, want %q", got, want)
	}
}

// What a pointer shows, the keyboard does too.
func TestTheKeyboardReadsCells(t *testing.T) {
	tab := Start(t).Open(serve(t, metricsOf(ready()), reads(pool(2, 50))), View{Width: 360})
	tab.Press("Tab", "Tab") // past the button
	for _, step := range []struct{ key, want string }{{"ArrowRight", "10.0.0.2 "}, {"ArrowRight", "10.0.0.3 "}, {"ArrowLeft", "10.0.0.2 "}, {"End", "10.0.0.51 "}, {"Home", "10.0.0.2 "}} {
		tab.Press(step.key)
		if got := tab.Text("#what"); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: it says %q, want %q", step.key, got, step.want)
		}
	}
	tab.Press("ArrowDown")
	if got := tab.Text("#what"); got == "" || strings.HasPrefix(got, "10.0.0.2 ") || strings.HasPrefix(got, "10.0.0.3 ") {
		t.Errorf("a row below is %q", got)
	}
	tab.Press("Escape")
	if got := tab.Eval(`document.getElementById('what').hidden`); got != "true" {
		t.Error("Escape does not end it")
	}
}

// refreshed makes the page ask again, as it does each five seconds, until a condition holds.
func refreshed(tab *Tab, until string) string {
	return tab.Eval(`(async () => {
		for (;;) {
			document.dispatchEvent(new Event('visibilitychange'));
			await new Promise(done => setTimeout(done, 100));
			if (` + until + `) return 'done';
		}
	})()`)
}

func TestThePageKeepsUpAndSaysWhenItDoesNot(t *testing.T) {
	m := metricsOf(ready())
	url := serve(t, m, reads(pool(2, 50)))
	tab := Start(t).Open(url, View{Width: 768})
	tab.Eval(`document.getElementById('pods1').open = true`)
	m.Observe(short())
	refreshed(tab, `document.querySelector('#banner strong').innerText === 'Not ready'`)
	if got := tab.Eval(`document.getElementById('pods1').open`); got != "true" {
		t.Error("what was open is closed")
	}
	if list := tab.Errors(); len(list) > 0 {
		t.Errorf("the browser says %v", list)
	}
	tab.Eval(`window.fetch = () => Promise.reject(new Error('away'))`)
	refreshed(tab, `!document.getElementById('late').hidden`)
	if got := tab.Text("#late"); !strings.HasPrefix(got, "No answer since ") {
		t.Errorf("it says %q", got)
	}
}

// Names are others': whatever they are, they are text.
func TestNamesAreText(t *testing.T) {
	const name = `<img src=x onerror="document.title='x'"><script>document.title='x'</script>"'{{.}}`
	p, s := pool(1, 10), short()
	p.Addresses[0].Owner = &eni.Owner{Namespace: name, Pod: name}
	s.Node, s.Problem, s.InFlight = name, name, []string{name}
	s.Causes[0].What = name
	m := metricsOf(s)
	m.Step(status.Step{Action: "assign", Object: name, Reason: name, Failed: name})
	tab := Start(t).Open(serve(t, m, reads(p)), View{Width: 768})
	if got := tab.Text("h1"); got != name {
		t.Errorf("the heading is %q", got)
	}
	if got := tab.Eval(`document.title + document.querySelectorAll('img').length`); got != name+" - enipool0" {
		t.Errorf("title and pictures: %q", got)
	}
	if list := tab.Errors(); len(list) > 0 {
		t.Errorf("the browser says %v", list)
	}
}

func TestThePageWorksWithoutScript(t *testing.T) {
	tab := Start(t).Open(serve(t, metricsOf(short()), reads(pool(2, 50))), View{Width: 768, NoScript: true})
	if got := tab.Text("#banner strong"); got != "Not ready" {
		t.Errorf("the banner says %q", got)
	}
	check(t, tab, "node-noscript")
}

// Letters on cells and words on the page can be read: WCAG asks for a contrast of 4.5 of text.
func TestTheContrastIsEnoughInBothThemes(t *testing.T) {
	c := Start(t)
	url := serve(t, metricsOf(short()), reads(pool(1, 30)))
	for _, dark := range []bool{false, true} {
		tab := c.Open(url, View{Width: 768, Dark: dark})
		low := tab.Eval(`(() => {
			const light = c => c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
			const parse = c => c.match(/[\d.]+/g).map(Number);
			const below = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] !== 0) return c.slice(0, 3); } return [255, 255, 255]; };
			return [...document.querySelectorAll('body *')].filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.getClientRects().length).map(e => {
				const [a, b] = [light(parse(getComputedStyle(e).color).slice(0, 3)), light(below(e))].sort((x, y) => y - x);
				return [(a + .05) / (b + .05), e.className + ' ' + e.textContent.slice(0, 30)];
			}).filter(([ratio]) => ratio < 4.5).map(([ratio, what]) => ratio.toFixed(2) + ' ' + what).join('; ');
		})()`)
		if low != "" {
			t.Errorf("dark %v: %s", dark, low)
		}
		tab.Close()
	}
}
