package aws

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/logging"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
)

// metadataAddress is where every instance finds its metadata.
const metadataAddress = "http://169.254.169.254"

// connect finds out which instance this is and sets self and api. Each call begins with it; the
// first that succeeds does the work.
func (d *Driver) connect(ctx context.Context) error {
	// A mutex would hold a caller for as long as another one waits for the metadata, even after
	// its own context has ended.
	select {
	case <-ctx.Done():
		return d.judgeFailure(ctx.Err(), false, false)
	case d.connecting <- struct{}{}:
		defer func() { <-d.connecting }()
	}
	if d.self.Instance != "" {
		return nil
	}
	for _, is := range [][2]string{{"endpoint", d.o.Endpoint}, {"metadata", d.o.Metadata}} {
		if err := wire.CheckURL(cmp.Or(is[1], metadataAddress), is[0], true); err != nil {
			return errorf(cloud.ErrForbidden, "%v", err)
		}
	}
	self, conf, err := d.findSelf(ctx)
	if err != nil {
		return err
	}
	conf.Credentials = d.hideCredentials(conf.Credentials)
	d.api = operationsOf(ec2.NewFromConfig(conf, func(o *ec2.Options) {
		o.Region, o.Retryer, o.BaseEndpoint = self.Region, counted{d.retryer()}, unlessZero(d.o.Endpoint)
		if d.http != nil {
			o.HTTPClient = d.http
		}
		// If a proxy refuses, the error of net/http has only the text of the status: findStranger
		// could not tell it from other failures.
		if own, is := o.HTTPClient.(*awshttp.BuildableClient); is {
			o.HTTPClient = own.WithTransportOptions(func(t *http.Transport) { t.OnProxyConnectResponse = wire.HearProxy })
		}
	}))
	d.self = self
	return nil
}

// findSelf asks the options, the environment and the metadata, in this order.
func (d *Driver) findSelf(ctx context.Context) (self driver.Self, conf aws.Config, err error) {
	meta := imds.New(imds.Options{Endpoint: cmp.Or(d.o.Metadata, metadataAddress), EnableFallback: aws.FalseTernary, HTTPClient: d.http,
		Retryer: d.retryer(), Logger: d.sdkLog()})
	self = driver.Self{Instance: d.o.Instance, Region: d.o.Region, Zone: d.o.Zone}
	if conf, err = d.loadConfig(ctx, meta, self.Region); err != nil {
		return self, conf, err
	}
	if self.Instance != "" {
		self.Region = cmp.Or(self.Region, conf.Region)
	}
	if self.Instance == "" || self.Region == "" {
		who, err := d.askMetadata(ctx, meta)
		if err != nil {
			return self, conf, err
		}
		self.Region = cmp.Or(self.Region, who.Region)
		if self.Instance == "" {
			self.Instance, self.Type, self.Zone = who.InstanceID, who.InstanceType, cmp.Or(self.Zone, who.AvailabilityZone)
		}
	}
	if conf.Region == "" {
		// Nobody but the metadata knew: without the region STS, which gives a service
		// account its role, could not be found.
		conf, err = d.loadConfig(ctx, meta, self.Region)
	}
	return self, conf, err
}

// loadConfig reads the SDK's configuration and makes the chain of credentials. The chain's own
// calls go to the region or, if it is "", to that of the environment and the shared files.
func (d *Driver) loadConfig(ctx context.Context, meta *imds.Client, region string) (aws.Config, error) {
	conf, err := config.LoadDefaultConfig(ctx, config.WithLogger(d.sdkLog()), config.WithRegion(region), config.WithHTTPClient(d.http),
		config.WithEC2RoleCredentialOptions(func(o *ec2rolecreds.Options) { o.Client = meta }))
	if err != nil {
		return aws.Config{}, d.judgeFailure(fmt.Errorf("read the SDK's configuration: %w", err), false, false)
	}
	return conf, nil
}

// hideCredentials wraps a provider so that its credentials appear in no text of this Driver.
func (d *Driver) hideCredentials(from aws.CredentialsProvider) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		got, err := from.Retrieve(ctx)
		if err == nil {
			d.secrets.Keep(got.SecretAccessKey, got.SessionToken, got.AccessKeyID)
		}
		return got, err
	})
}

// sensitive is what answers may quote and logs must not have: the ID of a key, the signature of
// a request, the encoded reason of a refusal.
var sensitive = regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{8,}|(Credential|Signature|SignedHeaders)=\S+|[A-Za-z0-9+/_=-]{64,}`)

// sdkLog takes what the SDK would otherwise write to standard error.
func (d *Driver) sdkLog() logging.Logger {
	return logging.LoggerFunc(func(_ logging.Classification, format string, args ...any) {
		d.log.Debug("aws sdk", "says", d.secrets.Line(fmt.Sprintf(format, args...)))
	})
}

// askMetadata asks the metadata which instance this is.
func (d *Driver) askMetadata(ctx context.Context, meta *imds.Client) (imds.InstanceIdentityDocument, error) {
	out, err := meta.GetInstanceIdentityDocument(ctx, nil)
	if err != nil {
		return imds.InstanceIdentityDocument{}, errorf(cloud.ErrUnavailable, "%s", d.secrets.Line(fmt.Sprintf(
			"ask the instance metadata at %s: %s", cmp.Or(d.o.Metadata, metadataAddress), withoutNarration(err.Error()))))
	}
	if out.InstanceID == "" || out.Region == "" {
		return imds.InstanceIdentityDocument{}, errorf(cloud.ErrUnavailable, "the instance metadata tells no instance ID or region")
	}
	return out.InstanceIdentityDocument, nil
}
