package ec2

import "time"

// What follows are the shapes of EC2's answers, as its API reference lists them.

// set is a list, of which the element is there even if it has no item.
type set[T any] struct {
	Items []T `xml:"item"`
}

// millis is the form of times in answers.
const millis = "2006-01-02T15:04:05.000Z"

func stamped(t time.Time) string { return t.UTC().Format(millis) }

type tagXML struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

type groupXML struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

type addressXML struct {
	Address string `xml:"privateIpAddress"`
	DNS     string `xml:"privateDnsName,omitempty"`
	Primary bool   `xml:"primary"`
}

type v6XML struct {
	Address string `xml:"ipv6Address"`
	Primary bool   `xml:"isPrimaryIpv6"`
}

type prefixXML struct {
	V4 string `xml:"ipv4Prefix,omitempty"`
	V6 string `xml:"ipv6Prefix,omitempty"`
}

// attachmentXML has no instance where it is shown inside of one.
type attachmentXML struct {
	ID       string `xml:"attachmentId"`
	Instance string `xml:"instanceId,omitempty"`
	Owner    string `xml:"instanceOwnerId,omitempty"`
	Index    int    `xml:"deviceIndex"`
	Card     int    `xml:"networkCardIndex"`
	Status   string `xml:"status"`
	Time     string `xml:"attachTime"`
	Delete   bool   `xml:"deleteOnTermination"`
}

// operatorXML tells that no service of the cloud manages a resource.
type operatorXML struct {
	Managed bool `xml:"managed"`
}

// eniXML is what an ENI is everywhere.
type eniXML struct {
	ID          string          `xml:"networkInterfaceId"`
	Subnet      string          `xml:"subnetId"`
	VPC         string          `xml:"vpcId"`
	Description string          `xml:"description"`
	Owner       string          `xml:"ownerId"`
	Status      string          `xml:"status"`
	MAC         string          `xml:"macAddress"`
	Primary     string          `xml:"privateIpAddress,omitempty"`
	DNS         string          `xml:"privateDnsName,omitempty"`
	SourceCheck bool            `xml:"sourceDestCheck"`
	Groups      set[groupXML]   `xml:"groupSet"`
	Attachment  *attachmentXML  `xml:"attachment"`
	Addresses   set[addressXML] `xml:"privateIpAddressesSet"`
	V6          set[v6XML]      `xml:"ipv6AddressesSet"`
	Prefixes    *set[prefixXML] `xml:"ipv4PrefixSet"`
	PrefixesV6  *set[prefixXML] `xml:"ipv6PrefixSet"`
	Type        string          `xml:"interfaceType"`
	Operator    operatorXML     `xml:"operator"`
}

// interfaceXML is an ENI on its own.
type interfaceXML struct {
	eniXML
	Zone             string      `xml:"availabilityZone"`
	ZoneID           string      `xml:"availabilityZoneId"`
	Requester        string      `xml:"requesterId,omitempty"`
	RequesterManaged bool        `xml:"requesterManaged"`
	Tags             set[tagXML] `xml:"tagSet"`
}

type stateXML struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type placementXML struct {
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
	Tenancy string `xml:"tenancy"`
}

type instanceXML struct {
	ID           string        `xml:"instanceId"`
	Image        string        `xml:"imageId"`
	State        stateXML      `xml:"instanceState"`
	DNS          string        `xml:"privateDnsName,omitempty"`
	LaunchIndex  int           `xml:"amiLaunchIndex"`
	Type         string        `xml:"instanceType"`
	Launched     string        `xml:"launchTime"`
	Placement    placementXML  `xml:"placement"`
	Subnet       string        `xml:"subnetId,omitempty"`
	VPC          string        `xml:"vpcId,omitempty"`
	Address      string        `xml:"privateIpAddress,omitempty"`
	SourceCheck  bool          `xml:"sourceDestCheck"`
	Groups       set[groupXML] `xml:"groupSet"`
	Architecture string        `xml:"architecture"`
	Hypervisor   string        `xml:"hypervisor"`
	Tags         set[tagXML]   `xml:"tagSet"`
	Interfaces   set[eniXML]   `xml:"networkInterfaceSet"`
}

type reservationXML struct {
	ID        string           `xml:"reservationId"`
	Owner     string           `xml:"ownerId"`
	Groups    set[groupXML]    `xml:"groupSet"`
	Instances set[instanceXML] `xml:"instancesSet"`
}

type cardXML struct {
	Index       int    `xml:"networkCardIndex"`
	Performance string `xml:"networkPerformance"`
	Interfaces  int    `xml:"maximumNetworkInterfaces"`
}

type networkXML struct {
	Performance string       `xml:"networkPerformance"`
	Interfaces  int          `xml:"maximumNetworkInterfaces"`
	CardCount   int          `xml:"maximumNetworkCards"`
	DefaultCard int          `xml:"defaultNetworkCardIndex"`
	Cards       set[cardXML] `xml:"networkCards"`
	V4          int          `xml:"ipv4AddressesPerInterface"`
	V6          int          `xml:"ipv6AddressesPerInterface"`
	HasV6       bool         `xml:"ipv6Supported"`
	ENA         string       `xml:"enaSupport"`
	EFA         bool         `xml:"efaSupported"`
}

type instanceTypeXML struct {
	Name       string     `xml:"instanceType"`
	Current    bool       `xml:"currentGeneration"`
	BareMetal  bool       `xml:"bareMetal"`
	Hypervisor string     `xml:"hypervisor"`
	CPUs       int        `xml:"vCpuInfo>defaultVCpus"`
	Memory     int        `xml:"memoryInfo>sizeInMiB"`
	Network    networkXML `xml:"networkInfo"`
}

type associationXML struct {
	ID      string `xml:"associationId"`
	V4      string `xml:"cidrBlock,omitempty"`
	V6      string `xml:"ipv6CidrBlock,omitempty"`
	State   string `xml:"cidrBlockState>state,omitempty"`
	V6State string `xml:"ipv6CidrBlockState>state,omitempty"`
}

type subnetXML struct {
	ID         string              `xml:"subnetId"`
	ARN        string              `xml:"subnetArn"`
	State      string              `xml:"state"`
	Owner      string              `xml:"ownerId"`
	VPC        string              `xml:"vpcId"`
	CIDR       string              `xml:"cidrBlock,omitempty"`
	V6         set[associationXML] `xml:"ipv6CidrBlockAssociationSet"`
	V6Native   bool                `xml:"ipv6Native"`
	V6OnCreate bool                `xml:"assignIpv6AddressOnCreation"`
	Free       int                 `xml:"availableIpAddressCount"`
	Zone       string              `xml:"availabilityZone"`
	ZoneID     string              `xml:"availabilityZoneId"`
	Default    bool                `xml:"defaultForAz"`
	Public     bool                `xml:"mapPublicIpOnLaunch"`
	Tags       set[tagXML]         `xml:"tagSet"`
}

type securityGroupXML struct {
	Owner       string        `xml:"ownerId"`
	ID          string        `xml:"groupId"`
	Name        string        `xml:"groupName"`
	Description string        `xml:"groupDescription"`
	VPC         string        `xml:"vpcId"`
	In          set[struct{}] `xml:"ipPermissions"`
	Out         set[struct{}] `xml:"ipPermissionsEgress"`
	Tags        set[tagXML]   `xml:"tagSet"`
}

type vpcXML struct {
	ID      string              `xml:"vpcId"`
	Owner   string              `xml:"ownerId"`
	State   string              `xml:"state"`
	CIDR    string              `xml:"cidrBlock"`
	V4      set[associationXML] `xml:"cidrBlockAssociationSet"`
	V6      set[associationXML] `xml:"ipv6CidrBlockAssociationSet"`
	DHCP    string              `xml:"dhcpOptionsId"`
	Tenancy string              `xml:"instanceTenancy"`
	Default bool                `xml:"isDefault"`
	Tags    set[tagXML]         `xml:"tagSet"`
}

type tagOfXML struct {
	Resource string `xml:"resourceId"`
	Type     string `xml:"resourceType"`
	Key      string `xml:"key"`
	Value    string `xml:"value"`
}

// done is the content of answers that say no more than that.
type done struct {
	Return bool `xml:"return"`
}
