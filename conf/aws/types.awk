# Writes types.yaml from the table of instance types that the amazon-vpc-cni-k8s
# project generates with DescribeInstanceTypes (pkg/vpc/vpc_ip_resource_limit.go):
#   awk -v date=YYYY-MM-DD -f types.awk vpc_ip_resource_limit.go >types.yaml
# Only names and numbers are taken; the numbers are those of the default network card.
# The families without prefixes are those with the Xen hypervisor: no new ones come.
BEGIN {
	print "# What AWS instance types may carry: ENIs of the default network card, the node's own"
	print "# among them, and IPv4 addresses of an ENI, its primary among them. Families"
	print "# withoutPrefixes take single addresses only, but for their bare metal. Written by"
	print "# types.awk; a file of this form replaces it: enipoolctl plan --limits FILE."
	print "source: EC2 DescribeInstanceTypes, through github.com/aws/amazon-vpc-cni-k8s pkg/vpc/vpc_ip_resource_limit.go"
	print "date: " date
	print "withoutPrefixes: [c1, c3, c4, cr1, d2, f1, g2, g3, g3s, h1, hs1, i2, i3, m1, m2, m3, m4, p2, p3, r3, r4, t1, t2, x1, x1e]"
	print "types:"
}
/^\t"/ { split($1, part, "\""); name = part[2] }
/^\t\tENILimit:/ { enis = $2 + 0 }
/^\t\tIPv4Limit:/ { printf "  %s: {enis: %d, ipsPerENI: %d}\n", name, enis, $2 | "LC_ALL=C sort" }
