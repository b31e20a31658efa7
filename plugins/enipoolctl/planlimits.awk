# Writes planlimits.yaml from the table of instance types that the amazon-vpc-cni-k8s
# project generates with DescribeInstanceTypes (pkg/vpc/vpc_ip_resource_limit.go):
#   awk -v date=YYYY-MM-DD -f planlimits.awk vpc_ip_resource_limit.go >planlimits.yaml
# Only names and numbers are taken; the numbers are those of the default network card.
BEGIN {
	print "# What AWS instance types may carry: ENIs of the default network card, the node's own"
	print "# among them, and IPv4 addresses of an ENI, its primary among them. Written by"
	print "# planlimits.awk; a file of this form replaces it: enipoolctl plan --limits FILE."
	print "source: EC2 DescribeInstanceTypes, through github.com/aws/amazon-vpc-cni-k8s pkg/vpc/vpc_ip_resource_limit.go"
	print "date: " date
	print "types:"
}
/^\t"/ { split($1, part, "\""); name = part[2] }
/^\t\tENILimit:/ { enis = $2 + 0 }
/^\t\tIPv4Limit:/ { printf "  %s: {enis: %d, ipsPerENI: %d}\n", name, enis, $2 | "LC_ALL=C sort" }
