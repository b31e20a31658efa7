package aws

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// wire is EC2's API and how the engine uses it, for faults on the client's side.
func apiWire() cloudtest.Wire {
	return cloudtest.Wire{
		Action: actionOf,
		Steps: map[string]cloudtest.Steps{
			"Limits":            {First: []string{"DescribeInstanceTypes"}},
			"Interfaces":        {First: []string{"DescribeNetworkInterfaces"}},
			"Subnets":           {First: []string{"DescribeSubnets"}},
			"AssignAddresses":   {First: []string{"AssignPrivateIpAddresses", "AssignIpv6Addresses"}},
			"UnassignAddresses": {First: []string{"UnassignPrivateIpAddresses", "UnassignIpv6Addresses"}},
			"DeleteInterface":   {First: []string{"DetachNetworkInterface"}, Last: []string{"DeleteNetworkInterface"}},
			// What ModifyNetworkInterfaceAttribute does nobody waits for: only the attachment
			// can come late.
			"CreateInterface": {First: []string{"CreateNetworkInterface"}, Attach: []string{"AttachNetworkInterface"},
				Last: []string{"ModifyNetworkInterfaceAttribute"}, Late: []string{"AttachNetworkInterface"}},
		},
		// The codes and their status: "Error codes for the Amazon EC2 API" of the EC2 API
		// reference, docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html.
		Refusals: map[cloudtest.Failure]cloudtest.Answer{
			cloudtest.Throttled:   written(http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded."),
			cloudtest.Forbidden:   written(http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation."),
			cloudtest.Unavailable: written(http.StatusInternalServerError, "InternalError", "An internal error has occurred"),
		},
		Tries: func(action string, f cloudtest.Failure) int {
			if strings.HasPrefix(action, "Describe") && f != cloudtest.Forbidden {
				return readTries
			}
			return 1
		},
		Chunk: cloudtest.Unlimited,
	}
}

// actionOf reads the action of a request of EC2's query protocol; those to the instance
// metadata have none.
func actionOf(_ *http.Request, body []byte) string {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return ""
	}
	return form.Get("Action")
}

// written is an error as EC2 writes it.
func written(status int, code, message string) cloudtest.Answer {
	return cloudtest.Answer{Status: status, Header: http.Header{"Content-Type": {"text/xml;charset=UTF-8"}}, Body: fmt.Sprintf(
		`<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>ea966190-f9aa-478e-9ede-example</RequestID></Response>`, code, message)}
}

// withFaults puts a Transport between a driver and its endpoint.
func withFaults(t *testing.T, d *Driver, base http.RoundTripper) *cloudtest.Transport {
	tr := cloudtest.NewTransport(t, base, apiWire())
	d.http = &http.Client{Transport: tr}
	return tr
}

// connection is a way to an endpoint that trusts the certificates of AWS_CA_BUNDLE in
// place of the system's, as the SDK does. The SDK can't do it with an HTTP client of
// ours, and refuses to go on: for the rest of the test the variable is gone.
func connection(t *testing.T) *http.Transport {
	t.Helper()
	base := http.DefaultTransport.(*http.Transport).Clone()
	if file := os.Getenv("AWS_CA_BUNDLE"); file != "" {
		text, err := os.ReadFile(file)
		must(t, err)
		base.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		if !base.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			t.Fatalf("AWS_CA_BUNDLE: %s has no certificate", file)
		}
		t.Setenv("AWS_CA_BUNDLE", "")
	}
	t.Cleanup(base.CloseIdleConnections)
	return base
}

// detachBy detaches an ENI as another client of the account would, and waits until that
// shows.
func detachBy(t *testing.T, d *Driver, id string) {
	t.Helper()
	asked := false
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		list, err := d.Interfaces(t.Context(), driver.Filter{IDs: []string{id}})
		must(t, err)
		if len(list) != 1 {
			t.Fatalf("ENI %s to detach is not shown", id)
		}
		switch i := list[0]; {
		case i.State != driver.Loose && !asked:
			_, err = changeEC2(context.Background(), d, &d.api.DetachNetworkInterface, &sdk.DetachNetworkInterfaceInput{AttachmentId: &i.Attachment, Force: aws.Bool(true)})
			must(t, err)
			asked = true
		case i.State == driver.Loose && asked:
			return
		}
		time.Sleep(wait)
	}
}

// moveBy detaches an ENI and begins to attach it to another instance, which has no other one.
func moveBy(t *testing.T, d *Driver, id, to string) {
	t.Helper()
	detachBy(t, d, id)
	_, err := d.Attach(context.Background(), driver.Attach{ID: id, Instance: to, Index: 1})
	must(t, err)
}
