package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// traffic is what the API server has counted.
type traffic struct {
	writes map[string]float64 // requests that write, by kind of object
	bytes  map[string]float64 // of NodeNetworks, by where they went
}

var metricLine = regexp.MustCompile(`^([a-z_]+)\{(.*)\} (\S+)`)

// labelOf finds a label of a line of metrics.
func labelOf(labels, name string) string {
	at := strings.Index(","+labels, ","+name+`="`)
	if at < 0 {
		return ""
	}
	value, _, _ := strings.Cut(labels[at+len(name)+2:], `"`)
	return value
}

// network is the kind whose bytes are counted.
const network = "nodenetworks"

// scrape reads the API server's metrics.
func (b *bed) scrape(ctx context.Context) (traffic, error) {
	text, err := b.api.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return traffic{}, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return readTraffic(text), nil
}

func readTraffic(text []byte) traffic {
	t := traffic{writes: map[string]float64{}, bytes: map[string]float64{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		found := metricLine.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		value, _ := strconv.ParseFloat(found[3], 64)
		resource, verb := labelOf(found[2], "resource"), labelOf(found[2], "verb")
		switch {
		case found[1] == "apiserver_request_total" && (verb == "POST" || verb == "PUT" || verb == "PATCH" || verb == "DELETE"):
			t.writes[resource] += value
		case resource != network:
		case found[1] == "apiserver_request_body_size_bytes_sum":
			t.bytes["requests"] += value
		case found[1] == "apiserver_response_sizes_sum":
			t.bytes["answers"] += value
		case found[1] == "apiserver_watch_events_sizes_sum":
			t.bytes["watches"] += value
		}
	}
	return t
}

// since returns what was counted after an earlier look.
func (t traffic) since(before traffic) traffic {
	d := traffic{writes: map[string]float64{}, bytes: map[string]float64{}}
	for of, n := range t.writes {
		if n -= before.writes[of]; n > 0 {
			d.writes[of] = n
		}
	}
	for of, n := range t.bytes {
		if n -= before.bytes[of]; n > 0 {
			d.bytes[of] = n
		}
	}
	return d
}
