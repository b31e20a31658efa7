// Package bce is a driver.Driver of Baidu's cloud: its virtual machines (BCC), bare metal
// of the old kind (BBC) and of the new (EBC). DESIGN.md beside this file has a table of
// what it believes of the cloud and who says so.
//
//   - An ENI of ours says in its description whose it is: the instance, the cluster, its
//     device index, the token, when it was asked for. The API forgets tokens after a day
//     and knows no index; the description is in every answer. The name, enipool-INSTANCE,
//     is what lists are filtered by.
//   - The service for ENIs knows nothing of an instance's primary ENI, which the instance's
//     description has. Its addresses come and go by the service of the instance's kind.
//   - IPv6 addresses are all secondary in this cloud; the mark tells which one is the
//     primary to us.
//   - Each request that changes something is made once. A read that the cloud refuses for
//     its rate is made again: that is of the wire, not of a policy.
//
// The SDK signs requests and names some of their fields. It does not carry them: it knows
// no contexts, and makes up codes and words for answers that it can't read.
package bce
