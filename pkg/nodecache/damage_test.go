package nodecache

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

// judge knows the small state.
type judge struct{ want *ipam.State }

// honest checks what a damaged form of the small file may decode to: nothing, or
// the small state less the addresses that are set aside. Then nothing is handed
// out twice and no used address is free. It returns how many are set aside, or
// what is wrong.
func (j judge) honest(file []byte) (aside int, err error) {
	s, err := decodeBytes(file)
	if err != nil {
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
			return 0, fmt.Errorf("an error without a type: %w", err)
		}
		return 0, nil
	}
	want := *j.want
	want.Addresses, want.Damaged = slices.Clone(want.Addresses), s.Damaged
	first := 1 + len(encodeSettings(want.Settings)) + len(want.ENIs) + 1
	for i := len(s.Damaged) - 1; i >= 0; i-- {
		d := s.Damaged[i]
		want.Addresses = slices.Delete(want.Addresses, d.Record, d.Record+1)
		if !strings.HasPrefix(d.Cause, fmt.Sprintf("line %d: ", first+d.Record+1)) {
			return 0, fmt.Errorf("record %d: %s", d.Record, d.Cause)
		}
	}
	// DeepEqual first: a readable difference is dear, and this runs for every bit.
	if !reflect.DeepEqual(want, s.State) {
		return 0, errors.New(diff(&want, &s.State))
	}
	return len(s.Damaged), nil
}

// honest fails the test if the file is not.
func honest(t *testing.T, what string, file []byte) {
	t.Helper()
	if _, err := (judge{small()}).honest(file); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func TestAnyByteMayFlip(t *testing.T) {
	file := mustEncode(t, small())
	j := judge{small()}
	var aside atomic.Int64
	var wait sync.WaitGroup
	for n := range len(file) / lineSize {
		file := bytes.Clone(file)
		wait.Go(func() {
			for at := n * lineSize; at < (n+1)*lineSize; at++ {
				for bit := range 8 {
					file[at] ^= 1 << bit
					n, err := j.honest(file)
					if err != nil {
						t.Errorf("line %d, byte %d, bit %d: %v", at/lineSize+1, at%lineSize, bit, err)
					}
					aside.Add(int64(n))
					file[at] ^= 1 << bit
				}
			}
		})
	}
	wait.Wait()
	// All flips in an address line set it aside, but for those that turn a small
	// letter of its sum into a capital one, which is the same number.
	lines := len(small().Addresses)
	letters := 0
	for _, line := range slices.Collect(slices.Chunk(file, lineSize))[len(file)/lineSize-lines:] {
		for _, c := range line[textSize+1 : lineSize-1] {
			if c >= 'a' {
				letters++
			}
		}
	}
	if want := lines*lineSize*8 - letters; int(aside.Load()) != want {
		t.Errorf("%d flips set an address aside, want %d", aside.Load(), want)
	}
}

func TestAnyByteMayBecomeABlankOrADigit(t *testing.T) {
	file := mustEncode(t, small())
	j := judge{small()}
	for at := range file {
		was := file[at]
		for _, c := range []byte{' ', '0'} {
			file[at] = c
			if _, err := j.honest(file); err != nil {
				t.Errorf("line %d, byte %d is %q: %v", at/lineSize+1, at%lineSize, c, err)
			}
		}
		file[at] = was
	}
}

func TestAFileOfAnotherLengthIsDamaged(t *testing.T) {
	file := mustEncode(t, small())
	for size := range file {
		if _, err := decodeBytes(file[:size]); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d of %d bytes: %v", size, len(file), err)
		}
	}
	last := file[len(file)-lineSize:]
	for _, more := range [][]byte{{'\n'}, last, make([]byte, lineSize), file} {
		if _, err := decodeBytes(append(bytes.Clone(file), more...)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes too many: %v", len(more), err)
		}
	}
}

func TestLinesThatStandElsewhereAreDamaged(t *testing.T) {
	file := mustEncode(t, small())
	n := len(file) / lineSize
	for to := range n {
		for from := range n {
			if from == to {
				continue
			}
			copied := bytes.Clone(file)
			copy(copied[to*lineSize:], file[from*lineSize:(from+1)*lineSize])
			honest(t, fmt.Sprintf("line %d over line %d", from+1, to+1), copied)
			copy(copied[from*lineSize:], file[to*lineSize:(to+1)*lineSize])
			honest(t, fmt.Sprintf("lines %d and %d changed", from+1, to+1), copied)
		}
	}
}

// A page that was written in part has the beginning of the new line and the end
// of the old one.
func TestALineHalfWrittenIsSetAside(t *testing.T) {
	before := mustEncode(t, small())
	after := small()
	after.Free(key("web"), 5000*time.Second)
	line := mustEncode(t, after)
	first := len(before)/lineSize - len(after.Addresses)
	for cut := 1; cut < lineSize; cut++ {
		torn := bytes.Clone(before)
		copy(torn[first*lineSize:], line[first*lineSize:first*lineSize+cut])
		s, err := decodeBytes(torn)
		if err != nil {
			t.Fatal(err)
		}
		switch whole := s.Addresses[0]; {
		case len(s.Damaged) == 1 && whole.Addr.String() == "10.0.0.12":
		case len(s.Damaged) == 0 && bytes.Equal(torn, line): // the rest was the same
		case len(s.Damaged) == 0 && bytes.Equal(torn, before):
		default:
			t.Errorf("cut at %d: %s", cut, show(whole))
		}
	}
}

func TestZeroesForALineSetItAside(t *testing.T) {
	file := mustEncode(t, small())
	for n := range len(file) / lineSize {
		torn := bytes.Clone(file)
		clear(torn[n*lineSize : (n+1)*lineSize])
		honest(t, fmt.Sprintf("line %d of zeroes", n+1), torn)
	}
}

// TestAChangeBesideDamagedLinesHitsItsOwnLine: record numbers and positions
// differ once a line is set aside.
func TestAChangeBesideDamagedLinesHitsItsOwnLine(t *testing.T) {
	records := len(small().Addresses)
	for broken := range 1 << records {
		c := newCache(t, small())
		file := bytesOf(t, c.Path)
		first := len(file)/lineSize - records
		for i := range records {
			if broken>>i&1 == 1 {
				file[(first+i)*lineSize] ^= 1
			}
		}
		if err := os.WriteFile(c.Path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		// 10.0.0.13 is free the longest, 10.0.0.12 has cooled since.
		want := -1
		for _, i := range []int{2, 1} {
			if broken>>i&1 == 0 {
				want = first + i
				break
			}
		}
		addr, err := pick(c, "new")
		got := changedLines(file, bytesOf(t, c.Path))
		if want < 0 {
			if exhausted := (*ipam.Exhausted)(nil); !errors.As(err, &exhausted) || exhausted.Damaged == 0 || len(got) > 0 {
				t.Errorf("%b: picked %s, %v; lines %v changed", broken, addr, err, got)
			}
			continue
		}
		if err != nil || !slices.Equal(got, []int{want}) {
			t.Errorf("%b: picked %s, %v; lines %v changed, want %d", broken, addr, err, got, want)
		}
		if s := get(t, c); len(s.OwnedBy(key("new"))) != 1 {
			t.Errorf("%b: the new owner is not in the node state", broken)
		}
	}
}

// changedLines returns the numbers of the lines in which the files differ.
func changedLines(a, b []byte) []int {
	var changed []int
	for n := range max(len(a), len(b)) / lineSize {
		at := n * lineSize
		if at+lineSize > min(len(a), len(b)) || !bytes.Equal(a[at:at+lineSize], b[at:at+lineSize]) {
			changed = append(changed, n)
		}
	}
	return changed
}

func TestAFutureVersionIsReadIfItsWriterSaysSo(t *testing.T) {
	file := mustEncode(t, small())
	const head = "enipool-node-cache %s boot " + someBoot + " gen 7 settings %d enis 2 addresses 6%s"
	with := func(version string, settings int, rest string) []byte {
		return resum(file, 0, fmt.Sprintf(head, version, settings, rest))
	}
	for name, future := range map[string][]byte{
		"min 3":                         with("3 min 3", 9, ""),
		"min 3, another head":           resum(file, 0, "enipool-node-cache 4 min 3 json"),
		"min 3, another sum":            bytes.Replace(file, []byte("1 min 1"), []byte("3 min 3"), 1),
		"min that is a word":            with("2 min x", 9, ""),
		"min 3, lines of another width": []byte("enipool-node-cache 3 min 3\nall else is new\n"),
	} {
		if _, err := decodeBytes(future); !errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := decodeBytes(with("7 min 3", 9, ""))
	want := "node cache has a newer format: it is version 7 and wants a reader of version 3 or later, this is 2: use plugin, agent and enipoolctl of one release"
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}

	// More keys in the head, and a setting that this version does not know.
	newer := with("2 min 1", 9, " shards 4")
	newer = resum(newer, 2, "set colour green")
	s, err := decodeBytes(newer)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diff(small(), &s.State); diff != "" {
		t.Error(diff)
	}
}

func TestAHeadThatContradictsTheFileIsDamaged(t *testing.T) {
	file := mustEncode(t, small())
	for _, head := range []string{
		"", "enipool-node-cache", "enipool-node-cache 1 min", "other 1 min 1 boot x gen 7 settings 9 enis 2 addresses 6",
		"enipool-node-cache 1 max 1 boot x gen 7 settings 9 enis 2 addresses 6",
		"enipool-node-cache 1 min 1 boot x gen 7 settings 9 enis 2",
		"enipool-node-cache 1 min 1 boot x gen 7 settings 9 enis 2 addresses 5",
		"enipool-node-cache 1 min 1 boot x gen 7 settings 9 enis 2 addresses 7",
		"enipool-node-cache 1 min 1 boot x gen 7 settings 10 enis 2 addresses 5",
		"enipool-node-cache 1 min 1 boot x gen 7 settings 9 enis 3 addresses 5",
		"enipool-node-cache 1 min 1 boot x gen 7 settings -9 enis 18 addresses 6",
		"enipool-node-cache 1 min 1 boot x gen 7 settings 9 enis -2 addresses 10",
		"enipool-node-cache 1 min 1 boot x gen -7 settings 9 enis 2 addresses 6",
		"enipool-node-cache 1 min 1 boot x gen 7 settings 9223372036854775807 enis 9223372036854775807 addresses 18",
		"enipool-node-cache 1 min 1 boot x gen 7 settings 99999999999999999999 enis 2 addresses 6",
	} {
		if _, err := decodeBytes(resum(file, 0, head)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", head, err)
		}
	}
}

// A large file is read where the kernel has it: what is not there is a fault of the
// processor and no error of a call.
func TestAFileThatIsCutWhileItIsReadIsDamaged(t *testing.T) {
	c := newCache(t, fullCache(3000))
	f, size, err := c.openLocked(os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if s, err := f.decode(size, nil); err != nil || len(s.Addresses) != 3000 {
		t.Fatalf("the whole file: %v", err)
	}
	if err := os.Truncate(c.Path, 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := f.decode(size, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("the cut file: %v", err)
	}
}

func TestDamageNamesItsLine(t *testing.T) {
	file := mustEncode(t, small())
	flipped := bytes.Clone(file)
	flipped[10*lineSize] ^= 1
	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"head", append([]byte("E"), file[1:]...), "node cache is damaged: line 1: is not the head of a node cache"},
		{"cut", file[:9000], "node cache is damaged: 9000 bytes are not whole lines of 512"},
		{"short", file[:len(file)-2*lineSize], "node cache is damaged: 17 lines, the head says 19"},
		{"ENI", flipped, "line 11: node cache is damaged: its checksum does not hold"},
		{"setting", resum(file, 5, "set coolDown soon"), `line 6: node cache is damaged: setting coolDown: time: invalid duration "soon"`},
		{"no setting", resum(file, 5, "get coolDown 30s"), `line 6: node cache is damaged: is not a setting: "get coolDown 30s"`},
		{"no ENI", resum(file, 10, "eno 0"), `line 11: node cache is damaged: is not an ENI: "eno 0"`},
		{"ENI's number", resum(file, 10, "eni 0 eni-a eth0 big 10.0.0.10/24 10.0.0.1 - -"),
			`line 11: node cache is damaged: eni eni-a: strconv.Atoi: parsing "big": invalid syntax`},
		{"ENI's sense", resum(file, 10, "eni 0 eni-a eth0 1500 10.0.0.10/24 10.1.0.1 - -"),
			"line 11: node cache is damaged: eni eni-a: gateway 10.1.0.1: is outside subnet 10.0.0.0/24"},
	} {
		_, err := decodeBytes(tt.file)
		if diff := cmp.Diff(tt.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestAnAddressLineThatMakesNoSenseIsSetAside(t *testing.T) {
	file := mustEncode(t, small())
	for _, text := range []string{
		"", "10.0.0.11", "10.0.0.11 0", "10.0.0.11 0 free", "10.0.0.11 0 idle 1.000", "10.0.0.256 0 free 1.000",
		"10.0.0 0 free 1.000", "10.0.0.1.1 0 free 1.000", "10.0.0.0011 0 free 1.000", "10.0.0.11. 0 free 1.000", "10..0.11 0 free 1.000",
		"10.0.0.11 x free 1.000", "10.0.0.11 0 free 1", "10.0.0.11 0 free 1.0", "10.0.0.11 0 free -1.000", "10.0.0.11 0 free 99999999999.000",
		"10.0.0.11 0 used 1.000", "10.0.0.11 0 used 1.000 tap pods web eth0 /run/netns/web 1 default u web",
		"10.0.0.11 0 used 1.000 veth pods web eth0 /run/netns/web x default u web",
	} {
		s, err := decodeBytes(resum(file, 13, text))
		if err != nil || len(s.Damaged) != 1 || len(s.Addresses) != 5 {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
}

// decodeAddr reads dotted quads by itself: it must agree with the standard.
func TestDottedQuadsAreReadAsNetipReadsThem(t *testing.T) {
	for _, text := range []string{"0.0.0.0", "255.255.255.255", "10.0.0.11", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.1.1.999", "01.2.3.4",
		"1.2.3.04", "00.0.0.0", "1.2.3.4 ", "", ".", "1..2.3", ".1.2.3", "1.2.3.", "1.2.3.-4", "1.2.3.4/32", "::", "::1", "fe80::1%eth0", "::ffff:1.2.3.4", "a.b.c.d"} {
		want, err1 := netip.ParseAddr(text)
		got, err2 := decodeAddr([]byte(text))
		if want != got || (err1 == nil) != (err2 == nil) {
			t.Errorf("%q: %v, %v; netip says %v, %v", text, got, err2, want, err1)
		}
	}
}

// What is not rebuilt keeps its damaged records: else nobody would be told of them, and their
// addresses would come back as new ones.
func TestACacheWithDamagedRecordsIsNotWrittenWithoutThem(t *testing.T) {
	c := newCache(t, small())
	file := bytesOf(t, c.Path)
	file[len(file)-lineSize] ^= 1
	write(t, c.Path, file)
	err := c.Replace(t.Context(), func(s *ipam.State, err error) (*ipam.State, error) { return s, err })
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("Replace: %v", err)
	}
	if now, err := os.ReadFile(c.Path); err != nil || !bytes.Equal(now, file) {
		t.Errorf("the file was changed: %v", err)
	}
}
