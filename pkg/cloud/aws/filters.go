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

// anyOf makes a filter for any of the values, and none if there are no values.
func anyOf(name string, values []string) []types.Filter {
	values = slices.Clone(values)
	slices.Sort(values)
	if values = slices.Compact(values); len(values) == 0 {
		return nil
	}
	return []types.Filter{{Name: aws.String(name), Values: values}}
}

// allTags makes filters that together select what has all of the tags.
func allTags(tags map[string]string) []types.Filter {
	var filters []types.Filter
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		filters = append(filters, types.Filter{Name: aws.String("tag:" + key), Values: []string{literalValue(tags[key])}})
	}
	return filters
}

// literalValue escapes a filter's value, so that it has no wildcards.
func literalValue(value string) string {
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

// tagList writes tags as a request has them, in the order of their keys.
func tagList(tags map[string]string) (list []types.Tag) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return list
}
