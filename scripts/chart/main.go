// Command chart packs conf/helm/enipool as Helm does, with the version of a release:
//
//	go run ./scripts/chart -release v1.2.3 -o .build/enipool-chart.tgz
//	helm install enipool .build/enipool-chart.tgz --namespace kube-system --values conf/helm/aws.yaml
//
// The same files make the same archive, bit by bit.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "chart:", err)
	os.Exit(1)
}

func run(args []string, stdout io.Writer) error {
	f := flag.NewFlagSet("chart", flag.ContinueOnError)
	out := f.String("o", ".build/enipool-chart.tgz", "the archive to write")
	dir := f.String("dir", "conf/helm/enipool", "the chart")
	release := f.String("release", "unreleased", "the release that it is of, as git describe says")
	tag := f.String("tag", "", "the tag of its images, if it is not the release")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *tag == "" {
		*tag = *release
	}
	version := chartVersion(*release)
	packed, err := pack(*dir, version, *tag)
	if err != nil {
		return fmt.Errorf("pack %s: %w", *dir, err)
	}
	if err := os.WriteFile(*out+".part", packed, 0o644); err != nil {
		return err
	}
	if err := os.Rename(*out+".part", *out); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "built chart enipool %s of images %s: %s\n", version, *tag, *out)
	return nil
}
