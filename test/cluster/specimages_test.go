package cluster

import (
	"fmt"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/enipool/enipool/test/kube"
)

// What the specs run in pods is this machine's: their own images are agnhost with programs of Alpine or
// Debian, which no Go module has.
var (
	shellPrograms = []string{"bash", "curl", "dig", "getent", "nc.openbsd", "ss"}
	library       = regexp.MustCompile(`(?m)(/\S+) \(0x`)
)

// withPrograms returns busybox with the programs that specs call, and their libraries.
func withPrograms(busybox kube.Image) (kube.Image, error) {
	image := kube.Image{Files: maps.Clone(busybox.Files), Links: maps.Clone(busybox.Links), Default: busybox.Default}
	for _, name := range shellPrograms {
		program, err := exec.LookPath(name)
		if err != nil {
			return image, fmt.Errorf("make the images of the specs: %w; scripts/deps.sh conformance installs it", err)
		}
		libraries, err := exec.Command("ldd", program).Output()
		if err != nil {
			return image, fmt.Errorf("ask for the libraries of %s: %w", program, err)
		}
		for _, m := range library.FindAllStringSubmatch(string(libraries), -1) {
			image.Files[m[1]] = m[1]
		}
		name, _, _ = strings.Cut(name, ".")
		image.Files["/usr/bin/"+name] = program
		delete(image.Links, "/bin/"+name)
	}
	image.Links["/bin/sh"] = "/usr/bin/bash" // that of busybox would run its own nc
	return image, nil
}

// specImages returns archives of the images that specs run, by the names under which the suite knows
// them, and the names of those that can't be made of what is at hand.
func (c *cluster) specImages(bin string) (archives, lacking []string) {
	c.t.Helper()
	busybox, err := kube.Busybox()
	c.must(err)
	busybox.Default = []string{"sh"}
	shell, err := withPrograms(busybox)
	c.must(err)
	agnhost := kube.Image{Files: maps.Clone(shell.Files), Links: maps.Clone(shell.Links), Command: []string{"/agnhost"}, Default: []string{"pause"}}
	agnhost.Files["/agnhost"], agnhost.Links["/agnhost-2"] = filepath.Join(bin, "agnhost"), "agnhost"
	for _, name := range []string{"localhost.crt", "localhost.key"} {
		agnhost.Files["/"+name] = filepath.Join(bin, name)
	}
	for _, folder := range []string{"uploads", "tmp"} {
		agnhost.Files["/"+folder+"/.keep"] = "/dev/null"
	}
	web := agnhost // nginx is but a web server to the specs that are run
	web.Default = []string{"test-webserver"}
	pause, err := kube.PauseProgram()
	c.must(err)
	kinds := map[string]kube.Image{"agnhost": agnhost, "nginx": web, "busybox": busybox, "glibc-dns-testing": shell,
		"pause": {Files: map[string]string{"/pause": pause}, Command: []string{"/pause"}}}
	names, err := exec.Command(filepath.Join(bin, "e2e.test"), "--list-images").Output()
	c.must(err)
	dir := c.t.TempDir()
	for ref := range strings.FieldsSeq(string(names)) {
		kind, _, _ := strings.Cut(path.Base(ref), ":")
		image, is := kinds[kind]
		if !is {
			lacking = append(lacking, ref)
			continue
		}
		archive := filepath.Join(dir, fmt.Sprint(len(archives), ".tar"))
		image.Ref = ref
		c.must(image.Write(archive))
		archives = append(archives, archive)
	}
	dns := filepath.Join(dir, "coredns.tar")
	c.must(kube.Image{Ref: "localhost/coredns:1", Command: []string{"/coredns"},
		Files: map[string]string{"/coredns": filepath.Join(bin, "coredns")}}.Write(dns))
	return append(archives, dns), lacking
}
