"""The bugs of the Redis adapter; see ``table``."""

from tests.mutants.mutant import LAWS, Mutant

REWRITES = "tests/integration/providers/test_redis_rewrites.py"

MUTANTS = (
    Mutant(
        name="Redis does not compare the revision",
        file="providers/redis/commit.lua",
        right="demand(put[2] == head[REVISION] and put[3] == head[REVISION_ID])",
        wrong="demand(put[2] ~= 0)",
        tests=(f"{LAWS}[redis-cas-wrong_expected_changes_nothing]",),
    ),
    Mutant(
        name="Redis does not look for the receipt",
        file="providers/redis/commit.lua",
        right="demand(not receipt)\n",
        wrong="",
        tests=(f"{LAWS}[redis-receipts-key_other_content_conflicts]",),
    ),
    Mutant(
        name="Redis claims a key that was buried",
        file="providers/redis/commit.lua",
        right="    demand(not (asked[5] and first == 't'))\n",
        wrong="",
        tests=(f"{LAWS}[redis-claims-tombstoned_key_is_refused]",),
    ),
    Mutant(
        name="Redis does not compare counters",
        file="providers/redis/commit.lua",
        right="    demand(asked[2] == null or asked[2] == values[i])\n",
        wrong="",
        tests=(f"{LAWS}[redis-counters-graph_counter_guards_decisions]",),
    ),
    Mutant(
        name="Redis leaves a head where it stood in the order",
        file="providers/redis/commit.lua",
        right="        in_order(old[i], put[1], leave)\n",
        wrong="",
        tests=(f"{LAWS}[redis-searching-pages_join_under_writes]",),
    ),
    Mutant(
        name="Redis takes a lease that somebody has",
        file="providers/redis/deliver.lua",
        right="local leased = delivery[ENDS] ~= null and now < tonumber(delivery[ENDS])",
        wrong="local leased = request.action ~= 'acquire' and now < tonumber(delivery[ENDS])",
        tests=(f"{LAWS}[redis-leases-lease_single_owner]",),
    ),
    Mutant(
        name="Redis acknowledges without the token",
        file="providers/redis/deliver.lua",
        right="not delivery[DELIVERED] and delivery[TOKEN] == request.token",
        wrong="not delivery[DELIVERED]",
        tests=(f"{LAWS}[redis-leases-acknowledge_needs_the_token]",),
    ),
    Mutant(
        name="Redis writes to another resource",
        file="providers/redis/prelude.lua",
        right="if marker ~= ARGV[1] then",
        wrong="if not marker then",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_identity]",),
    ),
    Mutant(
        name="Redis may expire what it keeps",
        file="providers/redis/prelude.lua",
        right="    demand(string.find(keys, ',expires=0,', 1, true), 'expiring_key')\n",
        wrong="",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_expiring_key]",),
    ),
    Mutant(
        name="Redis may be a replica",
        file="providers/redis/prelude.lua",
        right="    demand(string.find(replication, '\\nrole:master\\r', 1, true), 'replica')\n",
        wrong="",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_replica]",),
    ),
    Mutant(
        name="Redis may not sync what it acknowledges",
        file="providers/redis/calls.py",
        right="        check_settings(settings)\n",
        wrong="",
        tests=(f"{LAWS}[redis-negotiation-negotiate_refuses_aof]",),
    ),
    Mutant(
        name="Redis may begin its file while it serves",
        file="providers/redis/prelude.lua",
        right="    demand((has_grown and not",
        wrong="    demand(true or (has_grown and not",
        tests=(REWRITES,),
    ),
    Mutant(
        name="Redis may leave out what it wrote when it starts",
        file="providers/redis/fitness.py",
        right="if link.skips_on_loading else []",
        wrong="if not link else []",
        tests=(REWRITES,),
    ),
    Mutant(
        name="Redis may have been emptied",
        file="providers/redis/calls.py",
        right="        if writes < before:\n",
        wrong="        if writes < 0:\n",
        tests=(REWRITES,),
    ),
    Mutant(
        name="a lost reply of Redis counts as not sent",
        file="providers/redis/calls.py",
        right="            if sent.in_doubt:\n",
        wrong="            if sent.in_doubt and not isinstance(error, ProviderError):\n",
        tests=(f"{LAWS}[redis-faults-timeout_is_unknown]",),
    ),
)
