"""English words whose forms no stemmer brings together: ``went`` is found by ``go``.

Left out are forms that mean something else at least as often, such as ``rose`` and ``bit``, and
those of stop words.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Each line: the form that stands for all, then the others.
_FORMS: Final = """
arise arose arisen
awake awoke awoken
become became
begin began begun
bend bent
bind bound
blow blew blown
break broke broken
breed bred
bring brought
build built
burn burnt
buy bought
catch caught
choose chose chosen
come came
creep crept
deal dealt
dig dug
draw drew drawn
dream dreamt
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
find found
flee fled
fly flew flown
forbid forbade forbidden
forget forgot forgotten
forgive forgave forgiven
freeze froze frozen
get got gotten
give gave given
go went gone
grow grew grown
hang hung
hear heard
hide hid hidden
hold held
keep kept
know knew known
lead led
learn learnt
leave left
lend lent
light lit
lose lost
make made
mean meant
meet met
misunderstand misunderstood
overcome overcame
pay paid
ride rode ridden
ring rang rung
run ran
say said
see saw seen
seek sought
sell sold
send sent
shake shook shaken
shine shone
shoot shot
show shown
shrink shrank shrunk
sing sang sung
sink sank sunk
sit sat
sleep slept
slide slid
speak spoke spoken
speed sped
spend spent
spill spilt
spin spun
spoil spoilt
stand stood
steal stole stolen
stick stuck
strike struck stricken
swear swore sworn
sweep swept
swim swam swum
swing swung
take took taken
teach taught
tear tore torn
tell told
think thought
throw threw thrown
undergo underwent undergone
understand understood
undertake undertook undertaken
wake woke woken
wear wore worn
weave wove woven
weep wept
win won
withdraw withdrew withdrawn
write wrote written
analysis analyses
child children
crisis crises
criterion criteria
foot feet
goose geese
half halves
hypothesis hypotheses
index indices
knife knives
life lives
man men
matrix matrices
mouse mice
person people
phenomenon phenomena
shelf shelves
thesis theses
thief thieves
tooth teeth
vertex vertices
wife wives
wolf wolves
woman women
"""


def _bases() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _FORMS.split("\n"):
        base, *forms = line.split() or [""]
        found |= dict.fromkeys(forms, base)
    return found


BASES: Final[Mapping[str, str]] = MappingProxyType(_bases())
"""The form that stands for all, of each other one."""
