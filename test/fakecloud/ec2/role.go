package ec2

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// credentials are those of the role that were given out last.
type credentials struct {
	id      string
	key     key
	updated time.Time
}

// renewal is how long before their end new credentials are there.
const renewal = 5 * time.Minute

// roleCredentials is the document of the role's credentials. New ones are made when
// the last are about to end; both are good until they do.
func (e *Endpoint) roleCredentials() string {
	now := e.a.Clock().Now().UTC()
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.issued; c.id == "" || !now.Before(c.key.expires.Add(-min(renewal, e.o.RoleTTL/2))) {
		e.ids++
		sum := sha256.Sum256(fmt.Append(nil, "credentials ", e.ids))
		e.issued = credentials{id: "ASIA" + strings.ToUpper(fmt.Sprintf("%x", sum[:8])), updated: now,
			key: key{secret: base64.StdEncoding.EncodeToString(sum[:30]), token: base64.StdEncoding.EncodeToString(sum[2:]),
				expires: now.Add(e.o.RoleTTL)}}
		e.keys[e.issued.id] = e.issued.key
	}
	return document(map[string]string{
		"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": e.issued.id, "SecretAccessKey": e.issued.key.secret,
		"Token": e.issued.key.token, "LastUpdated": e.issued.updated.Format(time.RFC3339),
		"Expiration": e.issued.key.expires.Format(time.RFC3339)})
}

// roleInfo is the document of the role.
func (e *Endpoint) roleInfo(launched time.Time) string {
	return document(map[string]string{"Code": "Success", "LastUpdated": launched.Format(time.RFC3339),
		"InstanceProfileArn": fmt.Sprintf("arn:aws:iam::%s:instance-profile/%s", e.a.Options().Owner, e.o.Role),
		"InstanceProfileId":  "AIPA" + strings.Repeat("1", 17)})
}

// identity is the document of an instance's identity.
func (s shower) identity(i sim.Instance, n sim.Interface, zone string) string {
	return document(map[string]any{"accountId": s.o.Owner, "architecture": "x86_64", "availabilityZone": zone,
		"billingProducts": nil, "devpayProductCodes": nil, "marketplaceProductCodes": nil,
		"imageId": "ami-0" + strings.Repeat("1", 16), "instanceId": i.ID, "instanceType": i.Type, "kernelId": nil,
		"pendingTime": i.Launched.Format(time.RFC3339), "privateIp": text(n.Primary, n.Primary.IsValid()), "ramdiskId": nil,
		"region": s.o.Region, "version": "2017-09-30"})
}

// document is a JSON document as the service writes them.
func document(fields any) string {
	text, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return "" // texts and nil can always be written
	}
	return string(text)
}
