package sim

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
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
		a.FailNext("CreateInterface", Fault{Lost: AfterCreate}, Fault{Later: time.Hour})
		for _, token := range []string{"t2", "t3"} {
			_, err := n.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "b", V4: 2, V6: 1})
			wantKind(t, err, cloud.ErrUnknown)
		}
		must(t, n.UnassignAddresses(t.Context(), "eni-00000003", addrs("10.0.0.5", "10.0.0.6")))
		must(t, a.SetForeign("b", 100))

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
		time.Sleep(time.Hour)
		list := loaded.Snapshot().Nodes["n1"]
		if got := list[len(list)-1]; got.Token != "t3" || got.ID != "eni-00000005" || len(got.Addresses) != 3 {
			t.Errorf("the late effect is %+v", got)
		}
	})
}

func TestADamagedAccountIsNotLoaded(t *testing.T) {
	a := newAccount(t, Options{})
	create(t, a.Node("n1"), "t1", 3)
	var file bytes.Buffer
	must(t, a.Save(&file))
	for _, tt := range []struct{ name, old, new, want string }{
		{"nothing", file.String(), "", "load account: EOF"},
		{"half of it", file.String()[100:], "", "load account: unexpected EOF"},
		{"another format", `"Format": 1`, `"Format": 2`, "load account: its format is 2, this version reads 1"},
		{"another key", `"Made": 3`, `"Maid": 3`, `load account: json: unknown field "Maid"`},
		{"no subnet", `"ID": "a"`, `"ID": "c"`, `load account: node n1: ENI eni-00000001 is of node n1 and subnet a`},
		{"another node", `"Node": "n1"`, `"Node": "n2"`, `load account: node n1: ENI eni-00000001 is of node n2 and subnet a`},
		{"a wrong subnet", `"V4": "10.0.0.0/24"`, `"V4": "10.0.0.1/24"`, "load account: subnet a: 10.0.0.1/24 is no network"},
		{"no pool", `"Pool4": {`, `"Pool6": {`, "load account: subnet a: it has no ipv4 addresses"},
		{"no such family", `"V6": "fd00:10::/64"`, `"V6": ""`, "load account: node n1: address fd00:10::2 is not of subnet a"},
		{"twice", `"10.0.0.6"`, `"10.0.0.5"`, "load account: address 10.0.0.5 is on ENI eni-00000003 and on ENI eni-00000003"},
		{"next is used", `"Next": "10.0.0.8"`, `"Next": "10.0.0.7"`, "load account: address 10.0.0.7 is used, and subnet a would give it out"},
		{"next is far", `"Next": "10.0.0.8"`, `"Next": "10.0.0.9"`, "load account: subnet a: 7 addresses lie before the next"},
		{"next is outside", `"Next": "10.0.0.8"`, `"Next": "10.1.0.8"`, "load account: subnet a: 10.1.0.8 is listed as the next"},
		{"free and used", `"Freed": null`, `"Freed": ["10.0.0.5"]`, "load account: subnet a: address 10.0.0.5 is listed as free"},
		{"too many foreign", `"Foreign": 0`, `"Foreign": 999`, "load account: subnet a: 6 addresses are used, counted as 6, with 999 foreign"},
		{"a wrong index", `"Index": 1,`, `"Index": 4,`, "load account: node n1: ENI eni-00000003 is at index 4, which is taken or beyond 4 ENIs"},
		{"a second own", `"Index": 1,`, `"Index": 0,`, "load account: node n1: ENI eni-00000003 is at index 0, which is taken"},
		{"reserved", `"10.0.0.5"`, `"10.0.0.1"`, "load account: address 10.0.0.1 is reserved in subnet a"},
		{"too many", `"V4": 8`, `"V4": 3`, "load account: ENI eni-00000003 has 3 ipv4 addresses, it may have 2"},
		{"not in order", `"10.0.0.5",`, `"10.0.0.9",`, "load account: addresses of ENI eni-00000003 are not in order"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(file.String(), tt.old, tt.new, 1)
			if text == file.String() {
				t.Fatalf("the file has no %s:\n%s", tt.old, text)
			}
			_, err := Load(Options{}, strings.NewReader(text))
			if !strings.HasPrefix(fmt.Sprint(err), tt.want) {
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
	if got := net.wires()[more[0]]; got != i.ID {
		t.Errorf("address %s goes to %q, want %s", more[0], got, i.ID)
	}
	must(t, loaded.Node("n1").DeleteInterface(t.Context(), i.ID))

	var file bytes.Buffer
	must(t, a.Save(&file)) // of before the deletion
	_, err := Load(Options{Network: net}, &file)
	if want := "the network delivers it to"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Load = %v, want %s", err, want)
	}
}
