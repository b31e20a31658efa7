package configfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/plugins/enipool-agent/cluster"
)

// Source is a configuration with the text that it is from.
type Source struct {
	Conf agentconf.Config
	Text []byte

	file configFile // as it was found
}

// Read reads the file. What it returns beside an error is what is known of it.
func Read(path string) (Source, error) {
	text, err := os.ReadFile(path)
	file := configFile{path: path, text: string(text), gone: errors.Is(err, fs.ErrNotExist)}
	if err != nil {
		return Source{file: file}, fmt.Errorf("read configuration: %w; --config names the file", err)
	}
	found, err := parseSource(path, text)
	found.file = file
	return found, err
}

// parseSource makes a configuration of the text.
func parseSource(path string, text []byte) (Source, error) {
	conf, err := agentconf.Parse(text)
	found := Source{Conf: conf, Text: text}
	if list, ok := err.(interface{ Unwrap() []error }); ok && len(list.Unwrap()) > 1 {
		return found, fmt.Errorf("%s:\n  %s", path, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	if err != nil {
		return found, fmt.Errorf("%s: %w", path, err)
	}
	if found.Conf.Node = cmp.Or(conf.Node, os.Getenv(cluster.NodeName)); found.Conf.Node == "" {
		if found.Conf.Node, err = os.Hostname(); err != nil {
			return found, fmt.Errorf("find the node's name: %w; set the key node", err)
		}
	}
	return found, nil
}

func ReadConfig(path string) (agentconf.Config, error) {
	found, err := Read(path)
	return found.Conf, err
}
