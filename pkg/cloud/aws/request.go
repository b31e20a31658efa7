package aws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/enipool/enipool/pkg/cloud"
)

// request is a call of the EC2 client, as a method value.
type request[I, O any] func(context.Context, *I, ...func(*ec2.Options)) (*O, error)

// read makes a call that changes nothing. The SDK repeats it where that may help.
func read[I, O any](ctx context.Context, c *Client, do request[I, O], in *I) (*O, error) {
	return send(ctx, c, false, do, in)
}

// change makes a call that changes something, once: most have no token, so that a
// second try would be a second change.
func change[I, O any](ctx context.Context, c *Client, do request[I, O], in *I) (*O, error) {
	return send(ctx, c, true, do, in, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
}

func send[I, O any](ctx context.Context, c *Client, mutates bool, do request[I, O], in *I, options ...func(*ec2.Options)) (*O, error) {
	if err := ctx.Err(); err != nil {
		return nil, because(cloud.ErrUnavailable, "given up before the call: %v", err)
	}
	out, err := do(ctx, in, options...)
	if err != nil {
		return nil, c.failure(err, mutates)
	}
	return out, nil
}
