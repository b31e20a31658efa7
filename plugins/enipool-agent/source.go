package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/enipool/enipool/pkg/config/agentconf"
)

// source is a configuration with the text that it is from.
type source struct {
	conf agentconf.Config
	text []byte

	file configFile // as it was found
}

// readSource reads the file. What it returns beside an error is what is known of it.
func readSource(path string) (source, error) {
	text, err := os.ReadFile(path)
	file := configFile{path: path, text: string(text), gone: errors.Is(err, fs.ErrNotExist)}
	if err != nil {
		return source{file: file}, fmt.Errorf("read configuration: %w; --config names the file", err)
	}
	found, err := parseSource(path, text)
	found.file = file
	return found, err
}

// parseSource makes a configuration of the text.
func parseSource(path string, text []byte) (source, error) {
	conf, err := agentconf.Parse(text)
	found := source{conf: conf, text: text}
	if list, ok := err.(interface{ Unwrap() []error }); ok && len(list.Unwrap()) > 1 {
		return found, fmt.Errorf("%s:\n  %s", path, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	if err != nil {
		return found, fmt.Errorf("%s: %w", path, err)
	}
	if found.conf.Node = cmp.Or(conf.Node, os.Getenv(nodeName)); found.conf.Node == "" {
		if found.conf.Node, err = os.Hostname(); err != nil {
			return found, fmt.Errorf("find the node's name: %w; set the key node", err)
		}
	}
	return found, nil
}

func readConfig(path string) (agentconf.Config, error) {
	found, err := readSource(path)
	return found.conf, err
}
