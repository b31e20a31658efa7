package aws

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/enipool/enipool/pkg/cloud"
)

// request is a call of the EC2 client, as a method value.
type request[I, O any] func(context.Context, *I, ...func(*ec2.Options)) (*O, error)

// read makes a call that changes nothing; there are calls when a Driver is connected. The SDK repeats it where that may help.
func read[I, O any](ctx context.Context, d *Driver, do *request[I, O], in *I) (*O, error) {
	return send(ctx, d, false, do, in)
}

// change makes a call that changes something, once: most have no token, so that a
// second try would be a second change.
func change[I, O any](ctx context.Context, d *Driver, do *request[I, O], in *I) (*O, error) {
	return send(ctx, d, true, do, in, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
}

func send[I, O any](ctx context.Context, d *Driver, mutates bool, do *request[I, O], in *I, options ...func(*ec2.Options)) (*O, error) {
	if err := d.connect(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, because(cloud.ErrUnavailable, "given up before the call: %v", err)
	}
	var sent atomic.Bool
	options = append(options, func(o *ec2.Options) { o.APIOptions = append(o.APIOptions, d.listen(&sent)) })
	out, err := (*do)(ctx, in, options...)
	if err != nil {
		return nil, d.failure(err, mutates, sent.Load())
	}
	return out, nil
}

// pages asks for page after page until there is none.
func pages(ask func(token *string) (next *string, err error)) error {
	var token *string
	for {
		next, err := ask(token)
		if err != nil || aws.ToString(next) == "" {
			return err
		}
		if token != nil && *token == *next {
			return errSamePage()
		}
		token = next
	}
}

func errSamePage() error {
	return because(cloud.ErrUnavailable, "EC2 gives the same page again and again")
}

// listen notes when a request is on its way: before that credentials, a connection or its
// certificate may fail, and EC2 can't have heard of it. Each answer tells the clock what time
// it is in EC2.
func (d *Driver) listen(sent *atomic.Bool) func(*middleware.Stack) error {
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	return func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("enipool", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, meta, err := next.HandleDeserialize(httptrace.WithClientTrace(ctx, trace), in)
			if answer, ok := out.RawResponse.(*smithyhttp.Response); ok && answer.StatusCode > 0 {
				sent.Store(true) // the SDK makes one without a status where there is none
			}
			theirs, told := awsmiddleware.GetServerTime(meta)
			if ours, answered := awsmiddleware.GetResponseAt(meta); told && answered {
				d.clock.note(ours, theirs)
			}
			return out, meta, err
		}), middleware.Before)
	}
}
