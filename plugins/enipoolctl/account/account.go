// Package account reads the flags that say what a cloud's account is like: what its instances
// carry, and which subnets it has.
package account

// Defaults are what a cloud does unless a flag says otherwise.
type Defaults struct {
	Reserved int // addresses kept of a subnet: network and broadcast, on aws also router, DNS and one more
	Quota    int // ENIs, of a VPC on baidu and of a region on aws
}

// DefaultsOf returns what a cloud does. It knows none of other clouds.
func DefaultsOf(cloud string) (Defaults, bool) {
	d, found := map[string]Defaults{"aws": {5, 5000}, "baidu": {2, 500}}[cloud]
	return d, found
}

// Clouds are those whose limits are known.
func Clouds() []string { return []string{"aws", "baidu"} }
