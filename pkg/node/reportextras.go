package node

import (
	"errors"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// ReportPort is a port of the node that leads to a pod, with the names of portMappings.
type ReportPort struct {
	HostPort      uint16     `json:"hostPort"`
	ContainerPort uint16     `json:"containerPort"`
	Protocol      string     `json:"protocol"`
	HostIP        netip.Addr `json:"hostIP,omitzero"` // absent: all addresses of the node
}

// ReportLimits are a pod's limits in bits per second and in bits, with the names of the
// bandwidth capability. 0 is no limit.
type ReportLimits struct {
	IngressRate  uint64 `json:"ingressRate,omitempty"`
	IngressBurst uint64 `json:"ingressBurst,omitempty"`
	EgressRate   uint64 `json:"egressRate,omitempty"`
	EgressBurst  uint64 `json:"egressBurst,omitempty"`
}

// AddExtras adds host ports and limits to the addresses of the pods that asked for them.
// Its arguments are the pod records, and what podrecord says of those that can't be read.
func (r *Report) AddExtras(records []podrecord.Record, unread error) {
	var damaged podrecord.Errors
	if errors.As(unread, &damaged) {
		for _, d := range damaged {
			r.UnreadRecords = append(r.UnreadRecords, d.Error())
		}
	} else if unread != nil {
		r.UnreadRecords = append(r.UnreadRecords, unread.Error())
	}
	held := hostport.HeldOf(records)
	limits := map[eni.Key]netconf.Limits{}
	for _, rec := range records {
		limits[rec.Key] = rec.Limits
	}
	for i := range r.Addresses {
		a := &r.Addresses[i]
		if a.Container == "" {
			continue
		}
		k := eni.Key{Network: a.Network, Container: a.Container, IfName: a.IfName}
		for _, p := range held[k] {
			if p.Pod == a.Address {
				a.HostPorts = append(a.HostPorts, reportPorts(p)...)
			}
		}
		a.Bandwidth = reportLimits(limits[k])
		for _, d := range damaged {
			if d.Of(k) {
				a.RecordError = d.Error()
			}
		}
	}
}

func reportPorts(p netconf.PodPorts) (list []ReportPort) {
	for _, port := range p.Ports {
		if !port.Serves(p.Pod) {
			continue
		}
		one := ReportPort{HostPort: port.Port, ContainerPort: port.PodPort, Protocol: port.Transport.String()}
		if !port.Host.IsUnspecified() {
			one.HostIP = port.Host
		}
		list = append(list, one)
	}
	return list
}

func reportLimits(l netconf.Limits) *ReportLimits {
	if l == (netconf.Limits{}) {
		return nil
	}
	return &ReportLimits{l.Ingress.Rate, l.Ingress.Burst, l.Egress.Rate, l.Egress.Burst}
}
