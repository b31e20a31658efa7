package sim

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/google/go-cmp/cmp"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
}

// saveAndLoad returns the account as the next process has it.
func saveAndLoad(t fataler, a *Account, o Options) *Account {
	t.Helper()
	var file bytes.Buffer
	if err := a.Save(&file); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(o, &file)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestASavedAccountGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, Options{})
		n := a.Node("n1")
		create(t, n, "t1", 3)
		a.FailNext(ActCreate, Fault{Answer: Lost})
		_, err := n.CreateInterface(t.Context(), cloud.Create{Token: "t2", Subnet: "b", V4: 2, V6: 1})
		wantKind(t, err, cloud.ErrUnknown)
		must(t, n.UnassignAddresses(t.Context(), "eni-00000003", addrs("10.0.0.5", "10.0.0.6")))
		must(t, a.SetUnmanaged("b", 100))

		loaded := whole(t, saveAndLoad(t, a, Options{}))
		if diff := cmp.Diff(a.Snapshot(), loaded.Snapshot(), plain...); diff != "" {
			t.Errorf("a loaded account is another (-saved +loaded):\n%s", diff)
		}
		if got := assign(t, loaded.Node("n1"), "eni-00000001", 1); got[0].String() != "10.0.0.5" {
			t.Errorf("%v was given out, want 10.0.0.5: 10.0.0.6 was freed last", got)
		}
		if i, err := loaded.Node("n1").CreateInterface(t.Context(), cloud.Create{Token: "t2", Subnet: "b", V4: 2}); err != nil || i.ID != "eni-00000004" {
			t.Errorf("the ENI to finish is %+v, %v", i, err)
		}
	})
}

func TestADamagedAccountIsNotLoaded(t *testing.T) {
	a := newAccount(t, Options{})
	create(t, a.Node("n1"), "t1", 3)
	_, err := a.Node("n1").CreateInterface(t.Context(), cloud.Create{Token: "t2", Subnet: "b"})
	must(t, err)
	a.SetTimes(time.Minute, 0, 0)
	_, err = a.NodeDriver("n2").Create(t.Context(), driver.Create{Subnet: "b"})
	must(t, err)
	var file bytes.Buffer
	must(t, a.Save(&file))
	for _, tt := range []struct{ name, old, new, want string }{
		{"nothing", file.String(), "", "EOF"},
		{"half of it", file.String()[100:], "", "unexpected EOF"},
		{"another format", `"Format": 3`, `"Format": 2`, "its format is 2, this version reads 3"},
		{"another key", `"Made": {`, `"Maid": {`, `json: unknown field "Maid"`},
		{"no subnet", `"ID": "a"`, `"ID": "c"`, `ENI eni-00000001: there is no subnet "a"`},
		{"no instance", `"Instance": "n1"`, `"Instance": "n9"`, `ENI eni-00000001: there is no instance "n9"`},
		{"no own instance", `"ID": "n1"`, `"ID": "n9"`, `node n1: there is no instance of that name`},
		{"a wrong subnet", `"V4": "10.0.0.0/24"`, `"V4": "10.0.0.1/24"`, "subnet a: 10.0.0.1/24 is no network"},
		{"no pool", `"Pool4": {`, `"Pool6": {`, "subnet a: it has no ipv4 addresses"},
		{"no such family", `"V6": "fd00:10::/64"`, `"V6": ""`, "ENI eni-00000001: address fd00:10::2 is not of subnet a"},
		{"twice", `"10.0.0.6"`, `"10.0.0.5"`, "ENI eni-00000003: address 10.0.0.5 is of eni-00000003"},
		{"another's", `"10.0.0.6"`, `"10.0.0.2"`, "ENI eni-00000003: address 10.0.0.2 is of eni-00000001"},
		{"next is far", `"Next": "10.0.0.8"`, `"Next": "10.0.0.9"`, "subnet 10.0.0.0/24 has 246 free addresses, counted as 247"},
		{"next is outside", `"Next": "10.0.0.8"`, `"Next": "10.1.0.8"`, "subnet a: 10.1.0.8 is listed as the next"},
		{"free and used", `"Freed": null`, `"Freed": ["10.0.0.5"]`, "address 10.0.0.5 is listed as free"},
		{"unmanaged and used", `"Others": null`, `"Others": ["10.0.0.5"]`, "ENI eni-00000003: address 10.0.0.5 is of unmanaged"},
		{"too many unmanaged", `"Foreign": 0`, `"Foreign": 999`, "subnet 10.0.0.0/24 has 253 addresses, 6 of them are used and 999 others'"},
		{"a wrong index", `"Index": 1,`, `"Index": 4,`, "node n1: ENI eni-00000003 is at index 4, which is taken or beyond 4 ENIs"},
		{"a second own", `"Index": 1,`, `"Index": 0,`, "node n1: ENI eni-00000003 is at index 0, which is taken"},
		{"a token twice", `"enipool/token": "t2"`, `"enipool/token": "t1"`, `node n1: token "t1" has made two ENIs`},
		{"reserved", `"10.0.0.5"`, `"10.0.0.1"`, "address 10.0.0.1 of ENI eni-00000003 is reserved or not of subnet a"},
		{"too many", `"V4": 8`, `"V4": 3`, "ENI eni-00000003 has 4 of ipv4, it may have 3"},
		{"too many ENIs", `"ENIs": 4`, `"ENIs": 1`, "instance n1 has 3 ENIs, it may have 1"},
		{"a state without a place", `"Status": "in-use"`, `"Status": "available"`, "ENI eni-00000001 is available with attachment"},
		{"nothing's call", `"What": "ready"`, `"What": "sung"`, `nothing happens that is called "sung"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(file.String(), tt.old, tt.new, 1)
			if text == file.String() {
				t.Fatalf("the file has no %s:\n%s", tt.old, text)
			}
			_, err := Load(Options{}, strings.NewReader(text))
			if text := fmt.Sprint(err); !strings.HasPrefix(text, "load account: ") || !strings.Contains(text, tt.want) {
				t.Errorf("Load = %v, want %s", err, tt.want)
			}
		})
	}
}

func TestAnAccountIsLoadedOntoItsNetworkAlone(t *testing.T) {
	net := newNetwork(t, "t")
	a := newAccount(t, Options{Network: net})
	i := create(t, a.Node("n1"), "t1", 2)
	loaded := whole(t, saveAndLoad(t, a, Options{Network: net}))
	more := assign(t, loaded.Node("n1"), i.ID, 1)
	got, err := loaded.deliveredByRouter()
	must(t, err)
	if got[more[0]] != i.ID {
		t.Errorf("address %s goes to %q, want %s", more[0], got[more[0]], i.ID)
	}
	must(t, loaded.Node("n1").DeleteInterface(t.Context(), i.ID))

	var file bytes.Buffer
	must(t, a.Save(&file)) // of before the deletion
	_, err = Load(Options{Network: net}, &file)
	if want := "the network delivers it to"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Load = %v, want %s", err, want)
	}
}

func TestWhatIsUnderWayComesToItsEndInALoadedAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{CreateTime: time.Minute, AttachTime: time.Minute, DetachTime: time.Minute}
		a := whole(t, newHalves(o))
		o.Reserve = EC2Reserve
		made, coming, going := makeENI(t, a, Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: 2, BlocksV4: 1}}), makeENI(t, a, Create{Subnet: "a"}), makeENI(t, a, Create{Subnet: "a"})
		time.Sleep(time.Minute)
		_, err := attachENI(t, a, Attach{Interface: going.ID, Instance: "i", Index: 1})
		must(t, err)
		time.Sleep(time.Minute)
		now, _ := truthOf(t, a, going.ID)
		must(t, detachENI(t, a, now.Attachment.ID))
		_, err = attachENI(t, a, Attach{Interface: coming.ID, Instance: "i", Index: 2})
		must(t, err)
		pending := makeENI(t, a, Create{Subnet: "a"})
		must(t, a.LeaveFree("a", 7))

		loaded := whole(t, saveAndLoad(t, a, o))
		for _, at := range []time.Duration{0, time.Minute} {
			time.Sleep(at)
			for _, i := range []Interface{made, coming, going, pending} {
				was, _ := truthOf(t, a, i.ID)
				is, _ := truthOf(t, loaded, i.ID)
				if diff := cmp.Diff(was, is, plain...); diff != "" {
					t.Errorf("after %s a loaded ENI is another (-saved +loaded):\n%s", at, diff)
				}
			}
			if was, is := freeOf(t, a, "a"), freeOf(t, loaded, "a"); was != is || is != 7 {
				t.Errorf("%d addresses are free, in the loaded account %d", was, is)
			}
		}
		if i, _ := truthOf(t, loaded, coming.ID); i.Status != InUse {
			t.Errorf("the ENI that was attaching is %s", i.Status)
		}
		must(t, loaded.LeaveFree("a", 100)) // the others' are known by name
	})
}

func TestAnAccountIsNotSavedWhileAnEffectIsToComeThatNoFileHolds(t *testing.T) {
	clock := newClock()
	a := newTestAccount(t, Options{Clock: clock})
	a.FailNext("Create", Fault{Later: time.Second})
	_, _, err := makes(t, a, "", "")
	must(t, err)
	if err := a.Save(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "still to come") {
		t.Errorf("Save = %v", err)
	}
	clock.now = clock.now.Add(time.Second)
	must(t, a.Save(new(bytes.Buffer)))
}
