"""A stand-in for Azure Cosmos DB: a server of this repository, not the service.

No Cosmos DB is available to the project's tests. This server speaks as much of its protocol as an
adapter needs, so that the vendor's SDK can talk to it: ``CosmosServer`` starts it, its ``control``
scripts ``Fault``s, and ``tests/integration/devstack/test_cosmos_*.py`` hold it to a contract. It
refuses with 400 whatever it does not know, and where the service's documents leave something open
it takes the stricter reading or refuses that too.

What it stands in for: TLS and signatures with the account's key; the account document; databases
and containers; items with etags, If-Match and expiry; transactional batches; queries of one
partition, in a part of the language; pages and continuations; statuses, substatuses and headers
that the SDK acts on. Acknowledged writes outlive a crash, and each batch is there whole or not.

What it does not prove:

- Time and cost. Request charges are made up, nothing is throttled by itself, nothing is slow.
- More than one copy. Every read sees the latest write, whatever consistency the account tells; one
  page of a query is of one moment; there is one physical partition that never splits, one region
  that never fails over, and no 20 GB of a logical partition. 410, 449, 503 and 403/1014 are only
  what a test scripts.
- Identity. A token is compared with one that the test names; Entra ID, role assignments, resource
  tokens, key rotation and firewalls are not there.
- Real indexes. Policies are compared with ORDER BY; texts are looked up by value whatever a policy
  says, and no index lags behind.

Where it is stricter than the service is known to be, or where that is not known:

- 2 MB are 2,000,000 bytes, of a request, a batch and an item with what the service adds. An id has
  at most 255 characters (newer documents: 1,023 bytes). A partition value is a text.
- Upsert, Patch, triggers, scripts, change feed, reading all items, queries across partitions, query
  plans, addresses by ``_rid``, throughput: refused. So are changing an item's id by replacing it,
  If-None-Match when writing, and Prefer for batches.
- What would come back as something else is refused: integers beyond 2^53, which the service rounds,
  surrogates by themselves, two members of one name.
- ``!=`` between two types, arrays or objects is refused: the documents call it undefined, and users
  tell otherwise. ``=`` between two types is undefined, as documented.
- ORDER BY takes properties that every item has, all numbers or all texts. Texts are ordered by code
  point; how the service orders beyond the basic plane is not known here. What no ORDER BY decides
  comes in an order that means nothing, and so do equals.
- SUM of nothing is 0, of anything but numbers refused. CONTAINS and ARRAY_CONTAINS take no third
  argument. GetCurrentTimestamp() is read for each item.
- A page holds 100 items where nothing is asked for, 1 to 1,000 where it is, and 4 MB. A
  continuation belongs to its query, its parameters, its partition and the very container.
- An item expires at ``_ts`` + TTL to the second, and its id is free from then on.
- A date more than 15 minutes off is 403, a wrong signature 401. Replacing what is absent is 404,
  also with a stale etag.
- A batch stops at the first operation that fails, and tells nothing of the others but 424.
"""

from broker.devstack.cosmos.control import Control
from broker.devstack.cosmos.faults import Fault
from broker.devstack.cosmos.server import CosmosServer

__all__ = ["Control", "CosmosServer", "Fault"]
