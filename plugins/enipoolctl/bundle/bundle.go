// Package bundle is the command that packs what support needs to see of a node, or of a cluster, into one file without secrets.
package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster"
	"github.com/spf13/cobra"
)

// part is a file of a bundle.
type part struct {
	name string
	read func(context.Context) ([]byte, error)
}

// partTime is how long one part may take: what hangs is told, and hides nothing else.
const partTime = 20 * time.Second

// Command returns the command bundle.
func Command(release string) *cobra.Command {
	var file string
	var whole bool
	on := onNode{release: release}
	reach := &cluster.Flags{}
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Pack what support needs to see of this node, or of the cluster, into one file",
		Long: `Pack what support needs to see of this node, or with --cluster of the cluster, into
one file: what the agent says, the node cache, what pool check finds, configuration,
the plugin's log, links, routes and rules; of a cluster enipool's objects, Nodes,
events, and its pods with their logs. It changes nothing.

Credentials are left out: values of keys like token, secret or password, access keys,
and what is written in their forms. Names of pods, namespaces and nodes and addresses
are in it: they are what it is about. Look into it before it leaves your hands:
tar -xzf shows text only. Its file summary.txt says what is missing and why.`,
		Example: `  enipoolctl bundle
  kubectl --namespace kube-system exec ds/enipool-agent -c agent -- enipoolctl bundle --file - >node.tar.gz
  enipoolctl bundle --cluster`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			parts, name := on.parts(), nodeName()
			if whole {
				asked, err := reach.Reach()
				if err != nil {
					return err
				}
				parts, name = ofCluster(cmd.Context(), asked.API, release), "cluster"
			}
			now := time.Now().UTC()
			folder := fmt.Sprintf("enipool-%s-%s", name, now.Format("20060102-150405"))
			all, missing := readAll(cmd.Context(), parts)
			if whole && len(missing) == len(parts)-1 { // all but this program's own version
				return fmt.Errorf("nothing of the cluster could be read, and no bundle was made: %w", missing[0])
			}
			if file == "-" {
				return packFiles(cmd.OutOrStdout(), folder, now, all)
			}
			path := cmp.Or(file, folder+".tar.gz")
			if err := writeFile(path, func(w io.Writer) error { return packFiles(w, folder, now, all) }); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s: %d files, and %d that could not be read (summary.txt says why)\n", path, len(all), len(missing))
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&file, "file", "f", "", "the file, - for standard output; default: enipool-NAME-TIME.tar.gz in this folder")
	flags.StringVar(&on.cache.Path, "cache", cmp.Or(os.Getenv("ENIPOOL_CACHE"), nodecache.DefaultPath), "the node cache; the environment's ENIPOOL_CACHE is the default where it is set")
	flags.StringVar(&on.config, "config", "/etc/enipool/agent.yaml", "the agent's configuration file")
	flags.StringVar(&on.network, "net-d", "/etc/cni/net.d", "the folder of network configurations")
	flags.StringVar(&on.log, "log", "/var/log/enipool.log", "the plugin's log")
	flags.BoolVar(&whole, "cluster", false, "of the cluster, and not of this node")
	reach.Register(cmd)
	for _, path := range []string{"file", "cache", "config", "log"} {
		_ = cmd.MarkFlagFilename(path)
	}
	_ = cmd.MarkFlagDirname("net-d")
	return cmd
}

// content is a file as it was read, without secrets.
type content struct {
	name string
	text []byte
}

// readAll reads the parts one after the other. The first file says what could not be read, and why.
func readAll(ctx context.Context, parts []part) (all []content, missing []error) {
	summary := "What is not here could not be read:\n"
	for _, p := range parts {
		within, cancel := context.WithTimeout(ctx, partTime)
		text, err := p.read(within)
		cancel()
		if err != nil {
			missing = append(missing, err)
			summary += fmt.Sprintf("%s: %v\n", p.name, err)
		}
		if len(text) > 0 {
			all = append(all, content{p.name, redactText(text)})
		}
	}
	if len(missing) == 0 {
		summary = "All could be read.\n"
	}
	return append([]content{{"summary.txt", redactText([]byte(summary))}}, all...), missing
}

// printedBy is a part that is what a command of enipoolctl prints.
func printedBy(name string, command *cobra.Command, args ...string) part {
	return part{name, func(ctx context.Context) ([]byte, error) {
		var out, said limited
		code := cli.Run(ctx, command, args, &out, &said)
		if code != 2 { // 1 is an answer
			return append(out.Bytes(), said.Bytes()...), nil
		}
		return out.Bytes(), errors.New(said.String())
	}}
}

// fileAt is a part that is a file.
func fileAt(name, path string) part {
	return part{name, func(context.Context) ([]byte, error) { return readEnd(path) }}
}

func nodeName() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "node"
}
