package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/enipool/enipool/pkg/cni"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/eni"
)

// The entrance of the protocol. The specification's own package skel does the same, but reads the
// configuration twice, compiles regular expressions at each start, and checks the namespace
// only after the call. Doing without it saves a fifth of a millisecond at each start of a pod,
// and a tenth of the program's size.

// verb is what one value of CNI_COMMAND asks for.
type verb struct {
	needs   []string // environment, besides CNI_COMMAND
	since   string   // the first version of the specification that has it
	lenient bool     // it goes on with what it can read: a DEL must not fail for a bad option
}

var verbs = map[string]verb{
	"ADD":    {needs: []string{"CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"}, since: "0.1.0"},
	"CHECK":  {needs: []string{"CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"}, since: "0.4.0"},
	"DEL":    {needs: []string{"CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"}, since: "0.1.0", lenient: true},
	"GC":     {needs: []string{"CNI_PATH"}, since: "1.1.0"},
	"STATUS": {needs: []string{"CNI_PATH"}, since: "1.1.0"},
}

// invocation is the one call that this process serves.
type invocation struct {
	command string
	getenv  func(string) string
	conf    config.Plugin
	request cni.Request
}

// readCall checks environment and configuration by the rules of the specification.
func (i *invocation) readCall(stdin io.Reader) *types.Error {
	asked, known := verbs[i.command]
	if !known {
		return types.NewError(types.ErrInvalidEnvironmentVariables, "unknown CNI_COMMAND: "+i.command, "")
	}
	if err := i.checkEnv(asked); err != nil {
		return err
	}
	text, err := io.ReadAll(stdin)
	if err != nil {
		return types.NewError(types.ErrIOFailure, fmt.Sprintf("read network configuration: %v", err), "")
	}
	conf, confErr := config.ParsePlugin(text)
	if key := (*config.KeyError)(nil); confErr != nil && !errors.As(confErr, &key) {
		return types.NewError(types.ErrDecodingFailure, confErr.Error(), "")
	}
	i.conf = conf
	if !isName(conf.Name) {
		return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("name: %q: must be letters, digits, '_', '.' and '-', the first a letter or digit", conf.Name), "")
	}
	if !slices.Contains(version.All.SupportedVersions(), conf.CNIVersion) {
		i.conf.CNIVersion = version.Current() // the error object must name a version that exists
		return types.NewError(types.ErrIncompatibleCNIVersion, "incompatible CNI versions", fmt.Sprintf("config is %q, plugin supports %q", conf.CNIVersion, version.All.SupportedVersions()))
	}
	if has, err := version.GreaterThanOrEqualTo(conf.CNIVersion, asked.since); err != nil || !has {
		return types.NewError(types.ErrIncompatibleCNIVersion, "config version does not allow "+i.command, fmt.Sprintf("config is %q, %s came with %s", conf.CNIVersion, i.command, asked.since))
	}
	i.request, err = cni.NewRequest(conf, confErr, i.getenv("CNI_CONTAINERID"), i.getenv("CNI_NETNS"), i.getenv("CNI_IFNAME"), i.getenv("CNI_ARGS"), asked.lenient)
	if err != nil {
		return cni.Error(err)
	}
	return nil
}

func (i *invocation) checkEnv(asked verb) *types.Error {
	var missing []string
	for _, name := range asked.needs {
		if i.getenv(name) == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return types.NewError(types.ErrInvalidEnvironmentVariables, fmt.Sprintf("required env variables [%s] missing", strings.Join(missing, ",")), "")
	}
	if len(asked.needs) < 2 {
		return nil // GC and STATUS are for no single container
	}
	if id := i.getenv("CNI_CONTAINERID"); !isName(id) {
		return types.NewError(types.ErrInvalidEnvironmentVariables, fmt.Sprintf("CNI_CONTAINERID: %q: must be letters, digits, '_', '.' and '-', the first a letter or digit", id), "")
	}
	if err := eni.ValidDevice(i.getenv("CNI_IFNAME")); err != nil {
		return types.NewError(types.ErrInvalidEnvironmentVariables, "CNI_IFNAME: "+err.Error(), "")
	}
	return nil
}

// isName tells whether s is what the specification allows for networks and
// containers.
func isName(s string) bool {
	for i, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '_' || c == '.' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}
