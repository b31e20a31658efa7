package aws

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// perFilter is how many values of a filter EC2 takes.
const perFilter = 200

// anyOf is a filter for any of the values; no values, no filter.
func anyOf(name string, values []string) []types.Filter {
	values = slices.Clone(values)
	slices.Sort(values)
	if values = slices.Compact(values); len(values) == 0 {
		return nil
	}
	return []types.Filter{{Name: aws.String(name), Values: values}}
}

// allTags are filters for all of the tags.
func allTags(tags map[string]string) []types.Filter {
	var filters []types.Filter
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		filters = append(filters, types.Filter{Name: aws.String("tag:" + key), Values: []string{literal(tags[key])}})
	}
	return filters
}

// literal is a filter's value that stands for itself alone.
func literal(value string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace(value)
}

// readTags returns the values of tags by their keys.
func readTags(list []types.Tag) map[string]string {
	tags := map[string]string{}
	for _, t := range list {
		tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return tags
}

// tagList is the tags as a request writes them.
func tagList(tags map[string]string) (list []types.Tag) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return list
}
