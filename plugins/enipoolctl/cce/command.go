// Package cce has the command that makes topologies of what CCE, Baidu's Kubernetes, has for the same.
package cce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster"
	"github.com/enipool/enipool/plugins/enipoolctl/manifest"
)

// Command returns the command import.
func Command() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "import",
		Short: "Make our objects of those of other systems",
	}, spreadsCommand())
}

// source is where objects are read, as it is typed.
type source struct {
	file, kubeconfig, context string
	timeout                   time.Duration
}

func spreadsCommand() *cobra.Command {
	from := &source{}
	cmd := &cobra.Command{
		Use:   "psts",
		Short: "Print topologies for what CCE has as PodSubnetTopologySpread",
		Long: `Print PodSubnetTopologies for the PodSubnetTopologySpreads and
ClusterPodSubnetTopologySpreads of a CCE cluster, as YAML to apply, with the Subnets that
must be Exclusive for them. Nothing is changed in the cluster.

  Elastic                               Elastic
  Elastic with enableReuseIPAddress     Sticky, with its ttl
  Fixed                                 Fixed
  maxSkew, whenUnsatisfiable            a constraint to put into the pods' template
  PrimaryENI                            left out

What is otherwise than it was stands in comments, and what is left out on stderr too: then
the exit code is 1. Labels, annotations and the addresses that pods have now stay behind.

Without --file the cluster is asked. Subnets of CCE that are read too tell which are
exclusive already.`,
		Example: "  enipoolctl import psts > topologies.yaml\n  kubectl get psts,cpsts,subnets.cce.baidubce.com -A -o yaml | enipoolctl import psts -f -",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			objects, err := from.read(cmd.Context(), cmd.InOrStdin())
			if err != nil {
				return err
			}
			is := convert(objects)
			if len(is.all)+len(is.left) == 0 {
				return errors.New("there is nothing to import: no PodSubnetTopologySpread and no ClusterPodSubnetTopologySpread")
			}
			if err := is.print(cmd.OutOrStdout()); err != nil {
				return err
			}
			is.tell(cmd.ErrOrStderr())
			if len(is.left) > 0 {
				return &cli.ExitError{Code: 1}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&from.file, "file", "f", "", "a file with the objects as YAML or JSON, - for stdin; default: the cluster")
	flags.StringVar(&from.kubeconfig, "kubeconfig", "", "the kubeconfig file; default: those of KUBECONFIG, ~/.kube/config, or the pod's own account")
	flags.StringVar(&from.context, "context", "", "the context of the kubeconfig; default: the current one")
	flags.DurationVar(&from.timeout, "timeout", 30*time.Second, "how long a request may take")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json") // the flags exist
	_ = cmd.MarkFlagFilename("kubeconfig")
	cli.Offer(cmd, "context")
	cli.Offer(cmd, "timeout", "10s", "30s")
	return cmd
}

// read returns the objects of the file or of the cluster.
func (s *source) read(ctx context.Context, stdin io.Reader) ([]object, error) {
	if s.file == "" {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		return s.readCluster(ctx)
	}
	file, err := manifest.Open(s.file, stdin)
	if err != nil {
		return nil, fmt.Errorf("read --file: %w", err)
	}
	defer file.Close()
	list, err := manifest.Read(file)
	if err != nil {
		return nil, fmt.Errorf("read --file %s: %w", cli.Spelled(s.file), err)
	}
	all, err := objectsOf(list)
	if err != nil {
		return nil, fmt.Errorf("read --file %s: %w", cli.Spelled(s.file), err)
	}
	return all, nil
}

// lists are the kinds that a cluster is asked for.
var lists = []struct {
	version, resource string
	spreads           bool
}{{"v2", "podsubnettopologyspreads", true}, {"v2alpha1", "clusterpodsubnettopologyspreads", true}, {"v1", "subnets", false}}

func (s *source) readCluster(ctx context.Context) (all []object, err error) {
	api, err := cluster.Open(s.kubeconfig, s.context, "")
	if err != nil {
		return nil, err
	}
	known := 0
	for _, kind := range lists {
		pages, is, err := api.ListAny(ctx, group, kind.version, kind.resource)
		if err != nil {
			return nil, err
		}
		// An older CCE has no cluster-wide kind, and a person may not need its subnets.
		if is && kind.spreads {
			known++
		}
		for _, page := range pages {
			list, err := manifest.Split(page)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", kind.resource, err)
			}
			objects, err := objectsOf(list)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", kind.resource, err)
			}
			all = append(all, objects...)
		}
	}
	if known == 0 {
		return nil, fmt.Errorf("the cluster has no kinds of %s: --kubeconfig and --context name one that has, --file what was saved of one", group)
	}
	return all, nil
}
