package nodecache

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const someBoot = "6f2c1f0e-7c0b-4f37-9a52-0b8f3a5f2d10"

func mustEncode(t testing.TB, s *ipam.State) []byte {
	t.Helper()
	file, err := encode(s, someBoot, 7)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func decodeBytes(file []byte) (*snapshot, error) {
	return decode(bytes.NewReader(file), int64(len(file)), nil)
}

// resum gives line n of the file another text, with the right sum.
func resum(file []byte, n int, text string) []byte {
	line := appendLine(nil, text, n)
	return append(append(bytes.Clone(file[:n*lineSize]), line...), file[(n+1)*lineSize:]...)
}

func TestAFileLooksLikeTheSample(t *testing.T) {
	for sample, state := range map[string]*ipam.State{"small": small(), "reserved": kept()} {
		want, err := os.ReadFile("testdata/" + sample + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for line := range strings.Lines(string(mustEncode(t, state))) {
			if len(line) != lineSize {
				t.Errorf("a line of %d bytes: %s", len(line), line)
			}
			text, sum := line[:textSize], line[textSize+1:lineSize-1]
			fmt.Fprintf(&got, "%s | %s\n", strings.TrimRight(text, " "), sum)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s: %s", sample, diff)
		}
	}
}

// The page shows lines of the sample, with their middle or their end cut.
func TestThePageShowsTheSample(t *testing.T) {
	page, err1 := os.ReadFile("DESIGN.md")
	sample, err2 := os.ReadFile("testdata/small.txt")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```\n")
	block, _, _ = strings.Cut(block, "```")
	if strings.Count(block, "\n") < 5 {
		t.Fatalf("the page shows no sample: %q", block)
	}
	for line := range strings.Lines(block) {
		at := strings.LastIndexByte(line, ' ')
		text := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(line[:at], " "), ".."), " ")
		sum := strings.TrimSpace(line[at:])
		known := false
		for l := range strings.Lines(string(sample)) {
			known = known || strings.HasPrefix(l, text) && strings.HasSuffix(l, " | "+sum+"\n")
		}
		if !known {
			t.Errorf("%q with sum %s is not in the sample", text, sum)
		}
	}
}

func TestTheSampleReadsBack(t *testing.T) {
	s, err := decodeBytes(mustEncode(t, small()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := diff(small(), &s.State); diff != "" {
		t.Error(diff)
	}
	if s.boot != someBoot || s.generation != 7 {
		t.Errorf("boot %s, generation %d", s.boot, s.generation)
	}
}

func TestNamesAreOneWordOfPrintableASCII(t *testing.T) {
	for name, want := range map[string]string{
		"":             "-",
		"-":            "%2D",
		"--":           "--",
		"web-0":        "web-0",
		"a b":          "a%20b",
		"100%":         "100%25",
		"%41":          "%2541",
		"line\nbreak":  "line%0Abreak",
		"tab\t":        "tab%09",
		"ü":            "%C3%BC",
		"\x7f\xff\x00": "%7F%FF%00",
	} {
		if got := escape(name); got != want {
			t.Errorf("escape(%q) = %q, want %q", name, got, want)
		}
		if got := unescape(want); got != name {
			t.Errorf("unescape(%q) = %q, want %q", want, got, name)
		}
	}
}

// names are what a runtime could pass: mostly plain, at times anything at all.
func names(longest int) *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?`),
		rapid.SampledFrom([]string{"", "-", "--", "%", "%%", "%2", "%2D", " ", "\n", "a b", "a\x00b", "ü", "日本", "%zz", "# "}),
		rapid.StringN(0, -1, longest),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, longest), func(b []byte) string { return string(b) }),
	)
}

func owners() *rapid.Generator[eni.Owner] {
	return rapid.Custom(func(t *rapid.T) eni.Owner {
		return eni.Owner{
			Key:        eni.Key{Network: names(12).Draw(t, "network"), Container: names(24).Draw(t, "container"), IfName: names(5).Draw(t, "ifname")},
			Kind:       rapid.SampledFrom([]eni.Kind{eni.Veth, eni.Chained, eni.Delegated}).Draw(t, "kind"),
			Netns:      names(24).Draw(t, "netns"),
			NetnsInode: rapid.Uint64().Draw(t, "inode"),
			Namespace:  names(80).Draw(t, "namespace"),
			Pod:        rapid.OneOf(names(60), names(300), rapid.Just(strings.Repeat("p", 300))).Draw(t, "pod"),
			UID:        names(80).Draw(t, "uid"),
		}
	})
}

func addresses() *rapid.Generator[eni.Address] {
	return rapid.Custom(func(t *rapid.T) eni.Address {
		a := eni.Address{
			ENI:   rapid.IntRange(0, eni.MaxIndex).Draw(t, "eni"),
			State: rapid.SampledFrom([]eni.State{eni.Free, eni.Used, eni.Cooling, eni.Releasing, eni.Held}).Draw(t, "state"),
			Since: time.Duration(rapid.Int64Range(0, 1<<31*1000-1).Draw(t, "since")) * time.Millisecond,
		}
		if b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "addr"); rapid.Bool().Draw(t, "v4") {
			a.Addr = netip.AddrFrom4([4]byte(b))
		} else {
			a.Addr = netip.AddrFrom16([16]byte(b))
		}
		if a.State == eni.Used {
			o := owners().Draw(t, "owner")
			a.Owner = &o
		}
		if a.State == eni.Held {
			a.HeldBy = plainLine(names(400).Draw(t, "held by"), maxCause)
		}
		return a
	})
}

// TestEveryAddressReadsBack: what identifies comes back as it was, whatever a
// runtime called it; what only informs may lose its end.
func TestEveryAddressReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := addresses().Draw(t, "address")
		text, err := encodeAddress(&want)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > textSize || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("line of %d bytes: %q", len(text), text)
		}
		line := appendLine(nil, text, 3)
		if !intact(line, 3) || intact(line, 4) {
			t.Fatal("the sum is not that of the line and its place")
		}
		var got eni.Address
		if err := decodeAddress(line[:textSize], &got); err != nil {
			t.Fatal(err)
		}
		if o := want.Owner; o != nil {
			cut := *o
			cut.Namespace = shortened(t, o.Namespace, got.Owner.Namespace, maxNamespace)
			cut.UID = shortened(t, o.UID, got.Owner.UID, maxUID)
			cut.Pod = shortened(t, o.Pod, got.Owner.Pod, len(text)-strings.LastIndexByte(text, ' ')-1)
			if len(text) < textSize && cut.Pod != o.Pod {
				t.Fatalf("pod %q is %q and there was room", o.Pod, cut.Pod)
			}
			want.Owner = &cut
		}
		if diff := cmp.Diff(show(want), show(got)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func show(a eni.Address) string {
	text := fmt.Sprint(a.Addr, a.ENI, a.State, a.Since)
	if a.Owner != nil {
		text += fmt.Sprintf(" %q", fmt.Sprintf("%+v", *a.Owner))
	}
	if a.State == eni.Held {
		text += " " + a.HeldBy
	}
	if a.Reservation != nil {
		text += fmt.Sprintf(" %q", fmt.Sprintf("%+v", *a.Reservation))
	}
	return text
}

// shortened checks that got is name, or its beginning if it has no room.
func shortened(t *rapid.T, name, got string, room int) string {
	if got != name && (!strings.HasPrefix(name, got) || len(escape(name)) <= room) {
		t.Fatalf("%q became %q with room for %d bytes", name, got, room)
	}
	return got
}

func TestAnOwnerThatDoesNotFitIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	for _, tt := range []struct {
		name  string
		owner eni.Owner
	}{
		{"a long network", eni.Owner{Key: eni.Key{Network: strings.Repeat("n", 500)}}},
		{"a long container id", eni.Owner{Key: eni.Key{Container: strings.Repeat("c", 500)}}},
		{"a path of many blanks", eni.Owner{Netns: strings.Repeat(" ", 170)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache(t, small())
			before := bytesOf(t, c.Path)
			err := c.Update(t.Context(), func(s *ipam.State) error {
				s.Free(key("web"), SinceBoot()) // a line that fits, before the one that doesn't
				_, err := s.AssignPod(tt.owner, "", SinceBoot())
				return err
			})
			want := fmt.Sprintf("owner does not fit a line of the node cache: network, container id and namespace path have %d bytes together",
				len(tt.owner.Network)+len(tt.owner.Container)+len(tt.owner.Netns))
			if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
				t.Error(diff)
			}
			if !bytes.Equal(before, bytesOf(t, c.Path)) {
				t.Error("the file changed")
			}
		})
	}
}

func TestTheLongestNamesThatKubernetesAllowsFit(t *testing.T) {
	o := eni.Owner{
		Key:   eni.Key{Network: strings.Repeat("n", 63), Container: strings.Repeat("c", 64), IfName: strings.Repeat("i", 15)},
		Netns: "/var/run/netns/cni-" + strings.Repeat("0", 36), NetnsInode: 1<<32 - 1,
		Namespace: strings.Repeat("s", 63), UID: strings.Repeat("u", 36), Pod: strings.Repeat("p", 63)}
	a := eni.Address{Addr: netip.MustParseAddr("2001:db8:1111:2222:3333:4444:5555:6666"), ENI: 150, State: eni.Used, Since: 1<<31*time.Second - 1, Owner: &o}
	text, err := encodeAddress(&a)
	if err != nil {
		t.Fatal(err)
	}
	var got eni.Address
	if err := decodeAddress([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o, *got.Owner); diff != "" {
		t.Error(diff)
	}
}

func TestACacheOfManyAddressesReadsBack(t *testing.T) {
	// More lines than one read takes, and not a multiple of it.
	want := fullCache(3*bufferLines + 7)
	s, err := decodeBytes(mustEncode(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := diff(want, &s.State); diff != "" {
		t.Error(diff)
	}
}

// A node state of a release that had no table for pods' routes says nothing of one, and a
// program that does not know the setting goes on reading a node state that has it.
func TestBlocksReadBackAndAreNoneWhereTheyAreNotNamed(t *testing.T) {
	want := small()
	want.Settings.V4Block, want.Settings.V6Block = 28, 80
	file := mustEncode(t, want)
	for _, line := range []string{"set ipv4Block 28 ", "set ipv6Block 80 "} {
		if !strings.Contains(string(file), line) {
			t.Errorf("the file has no %q", line)
		}
	}
	got, err := decodeBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(want, &got.State); d != "" {
		t.Error(d)
	}
	if strings.Contains(string(mustEncode(t, small())), "Block") {
		t.Error("a node state without blocks names some")
	}
}

// Readers of before take what stands behind the routers for nothing.
func TestRangesForPodsReadBack(t *testing.T) {
	want := small()
	want.ENIs[1].Pods = []netip.Prefix{netip.MustParsePrefix("10.64.0.0/24"), netip.MustParsePrefix("2001:db8:1::/64")}
	file := mustEncode(t, want)
	if line := " fe80::1 10.64.0.0/24 2001:db8:1::/64 "; !strings.Contains(string(file), line) {
		t.Errorf("the file has no %q", line)
	}
	got, err := decodeBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(want, &got.State); d != "" {
		t.Error(d)
	}
}

// The line of an ENI has room for some twenty; a subnet may have hundreds, and a node state that passes
// its Check has to fit.
func TestManyRangesForPodsReadBack(t *testing.T) {
	for _, count := range []int{1, 10, 20, 40, 170} {
		want := small()
		for k := range count {
			want.ENIs[0].Pods = append(want.ENIs[0].Pods, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 64, byte(k), 0}), 24))
		}
		if err := want.Check(); err != nil {
			t.Fatal(err)
		}
		file, err := encode(want, someBoot, 7)
		if err != nil {
			t.Errorf("%d ranges: %v", count, err)
			continue
		}
		got, err := decodeBytes(file)
		if err != nil {
			t.Errorf("%d ranges: %v", count, err)
			continue
		}
		for i, nic := range got.ENIs {
			if !nic.Equal(want.ENIs[i]) {
				t.Errorf("%d ranges: read back %+v", count, nic)
			}
		}
	}
}

func TestRangesForPodsThatCantBeReadAreDamage(t *testing.T) {
	for _, text := range []string{"set podRanges x=10.64.0.0/24", "set podRanges 1=", "set podRanges 1", "set podRanges 1=10.64.0.0/24,"} {
		if is, err := decodePodRanges(text, map[int][]netip.Prefix{}); !is || !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %t, %v", text, is, err)
		}
	}
}

func TestACacheWithoutAPodsTableHasItsPodsInTheMainTable(t *testing.T) {
	old := small()
	old.Settings.PodsInMain = true
	file := mustEncode(t, old)
	if bytes.Contains(file, []byte("podsTable")) {
		t.Errorf("the file names a table:\n%s", file)
	}
	s, err := decodeBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diff(old, &s.State); diff != "" {
		t.Error(diff)
	}
	_, err = decodeBytes(resum(mustEncode(t, small()), 7, "set podsTable 99"))
	if want := "line 8: node cache is damaged: setting podsTable: must be 100: 99"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}
