package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
)

// request is a call of the EC2 client, as a method value.
type request[I, O any] func(context.Context, *I, ...func(*ec2.Options)) (*O, error)

// askEC2 makes a call that changes nothing. The SDK repeats it where that may help. do is a pointer
// into Driver.api, which is empty until callEC2 has connected the Driver.
func askEC2[I, O any](ctx context.Context, d *Driver, do *request[I, O], in *I) (*O, error) {
	return callEC2(ctx, d, false, do, in)
}

// changeEC2 makes a call that changes something, once: most calls have no token, so a
// repetition would be a second change.
func changeEC2[I, O any](ctx context.Context, d *Driver, do *request[I, O], in *I) (*O, error) {
	return callEC2(ctx, d, true, do, in, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
}

func callEC2[I, O any](ctx context.Context, by *Driver, mutates bool, do *request[I, O], in *I, options ...func(*ec2.Options)) (*O, error) {
	if err := by.connect(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, errorf(cloud.ErrUnavailable, "given up before the call: %v", err)
	}
	var sent wire.Sent
	options = append(options, func(o *ec2.Options) { o.APIOptions = append(o.APIOptions, by.watchRequest(&sent)) })
	out, err := (*do)(ctx, in, options...)
	if err != nil {
		return nil, by.judgeFailure(err, mutates, sent.Load())
	}
	return out, nil
}

// counted is a Retryer that asks driver.Again before a read is repeated.
type counted struct{ aws.RetryerV2 }

// GetRetryToken implements aws.Retryer: the SDK calls it before each try but the first.
func (c counted) GetRetryToken(ctx context.Context, failed error) (release func(error) error, err error) {
	if err := driver.Again(ctx); err != nil {
		return nil, err
	}
	return c.RetryerV2.GetRetryToken(ctx, failed)
}

// page asks for one page of what filters select, and returns the token of the next one. A nil
// token asks for the first page.
type page[T any] func(filters []types.Filter, token *string) (list []T, next *string, err error)

// listAll returns what is on all pages.
func listAll[T any](filters []types.Filter, ask page[T]) (all []T, err error) {
	var token *string
	for {
		some, next, err := ask(filters, token)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		switch {
		case aws.ToString(next) == "":
			return all, nil
		case token != nil && *token == *next:
			return nil, errSamePage()
		}
		token = next
	}
}

// listByID returns the objects that have one of the IDs. It uses a filter: in the request's own
// list of IDs, a single one that EC2 does not know would fail the whole request.
func listByID[T any](filter string, ids []string, ask page[T]) (all []T, err error) {
	for some := range slices.Chunk(ids, perFilter) {
		list, err := listAll(anyOf(filter, some), ask)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func errSamePage() error {
	return errorf(cloud.ErrUnavailable, "EC2 gives the same page again and again")
}

// watchRequest sets sent when a request is on its way, and tells the driver's clock the time of
// each answer.
func (d *Driver) watchRequest(sent *wire.Sent) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("enipool", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, meta, err := next.HandleDeserialize(sent.Trace(ctx), in)
			if answer, ok := out.RawResponse.(*smithyhttp.Response); ok && answer.StatusCode > 0 {
				sent.Store(true) // without an answer the SDK makes up one, with a status of 0
			}
			theirs, told := awsmiddleware.GetServerTime(meta)
			if ours, answered := awsmiddleware.GetResponseAt(meta); told && answered {
				d.clock.Note(ours, theirs)
			}
			return out, meta, err
		}), middleware.Before)
	}
}
