package aws

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/logging"
	"github.com/enipool/enipool/pkg/cloud"
)

// metadataAddress is where every instance finds its metadata.
const metadataAddress = "http://169.254.169.254"

// session is a connection to EC2 as the node.
type session struct {
	api      operations
	instance string
	zone     string // as Options or the metadata say, may be ""
	kind     string // the instance type as the metadata says, "" if not asked
}

// connect returns the session. The first call makes it; if that fails, the next.
func (c *Client) connect(ctx context.Context) (*session, error) {
	leave, err := enter(ctx, c.connecting)
	if err != nil {
		return nil, c.failure(err, false)
	}
	defer leave()
	if c.session == nil {
		s, err := c.newSession(ctx)
		if err != nil {
			return nil, err
		}
		c.session = s
	}
	return c.session, nil
}

func (c *Client) newSession(ctx context.Context) (*session, error) {
	if err := validEndpoints(c.o); err != nil {
		return nil, &callError{failed: cloud.Error{Kind: cloud.ErrForbidden, Detail: err.Error()}}
	}
	meta := imds.New(imds.Options{Endpoint: cmp.Or(c.o.Metadata, metadataAddress), EnableFallback: aws.FalseTernary, HTTPClient: c.http,
		Retryer: c.retryer(), Logger: c.sdkLog()})
	conf, err := config.LoadDefaultConfig(ctx, config.WithLogger(c.sdkLog()),
		config.WithEC2RoleCredentialOptions(func(o *ec2rolecreds.Options) { o.Client = meta }))
	if err != nil {
		return nil, c.failure(fmt.Errorf("read the SDK's configuration: %w", err), false)
	}
	s := &session{instance: c.o.Instance, zone: c.o.Zone}
	region := c.o.Region
	if s.instance != "" {
		region = cmp.Or(region, conf.Region)
	}
	if s.instance == "" || region == "" {
		who, err := c.whoami(ctx, meta)
		if err != nil {
			return nil, err
		}
		region = cmp.Or(region, who.Region)
		if s.instance == "" {
			s.instance, s.kind, s.zone = who.InstanceID, who.InstanceType, cmp.Or(s.zone, who.AvailabilityZone)
		}
	}
	conf.Credentials = c.secrets.watch(conf.Credentials)
	s.api = operationsOf(ec2.NewFromConfig(conf, func(o *ec2.Options) {
		o.Region, o.Retryer, o.BaseEndpoint = region, c.retryer(), nil
		if c.o.Endpoint != "" {
			o.BaseEndpoint = aws.String(c.o.Endpoint)
		}
		if c.http != nil {
			o.HTTPClient = c.http
		}
	}))
	return s, nil
}

// sdkLog is where the SDK says what it would else write to standard error.
func (c *Client) sdkLog() logging.Logger {
	return logging.LoggerFunc(func(_ logging.Classification, format string, args ...any) {
		c.log.Debug("aws sdk", "says", shorten(c.secrets.redact(fmt.Sprintf(format, args...))))
	})
}

// whoami asks the metadata which instance this is.
func (c *Client) whoami(ctx context.Context, meta *imds.Client) (imds.InstanceIdentityDocument, error) {
	out, err := meta.GetInstanceIdentityDocument(ctx, nil)
	if err != nil {
		return imds.InstanceIdentityDocument{}, &callError{failed: cloud.Error{Kind: cloud.ErrUnavailable, Detail: fmt.Sprintf(
			"ask the instance metadata at %s: %v; cloud.instance and cloud.region would tell the same", cmp.Or(c.o.Metadata, metadataAddress), err)}}
	}
	if out.InstanceID == "" || out.Region == "" {
		return imds.InstanceIdentityDocument{}, &callError{failed: cloud.Error{Kind: cloud.ErrUnavailable, Detail: "the instance metadata tells no instance ID or region"}}
	}
	return out.InstanceIdentityDocument, nil
}
