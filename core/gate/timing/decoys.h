// SPDX-License-Identifier: GPL-3.0-or-later
//
// Samples of the candidate's that are like any other to it and that nobody times: at places that cannot be foreseen, some of their sets, which
// cannot be foreseen either, hold contents whose results are known, hard ones among them, and are judged element by element afterwards.
// So whoever is honest only when looked at, or right only on what timed runs usually hold, is wrong where it counts.
// Plans in workers of their own get such samples too, unjudged: who gets none would know that it is not the candidate.
#pragma once

#include "core/gate/timing/timedbuffers.h"

#include <set>

namespace klineage::gate {

struct Decoy {
    TimedRun run;
    std::map<std::size_t, std::size_t> known; ///< set -> content, of sets that are run
    std::set<std::size_t> spoilt;             ///< of those: inputs are others once the set has been run
};

/// The contents that a trial's decoys have: all that are known, or, where looking at one takes long, a seed's and a hard one.
[[nodiscard]] std::vector<std::size_t> drawContents(const TimedBuffers &buffers, bool all);

/// Of a run like any other. In half of them all known sets look as timed ones do; in the others half of them have hard contents where there
/// are such. In some the last runs of the sample are left out; in most some sets are
/// other contents in a few places until shortly before the turn of one of them, and others become so after theirs.
[[nodiscard]] Decoy drawDecoy(TimedRun run, const TimedBuffers &buffers,
                              const std::vector<std::size_t> &contents);

/// Before which of so many samples there is a decoy (samples: behind the last one): at least one place, with each further one half as likely.
[[nodiscard]] std::multiset<std::size_t> drawPlaces(std::size_t samples);

} // namespace klineage::gate
