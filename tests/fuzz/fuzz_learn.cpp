// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/deoptimize/proposal.h"
#include "core/run/lift/cardreply.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::run;

namespace {

LiftGroup group()
{
    LiftGroup made;
    made.category = "tiling";
    made.language = "opencl";
    made.evidence = {"w/p/K01"};
    made.rejected = {"w/p/R00a"};
    made.figures["w/p/K01"].factors = {2, 0.5};
    made.figures["w/p/R00a"] = {};
    made.scope = {{"w"}, {"opencl"}, {"p"}, {}};
    return made;
}

} // namespace

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {
        R"({"category": "tiling", "locus": "loop", "title": "no tiles", "summary": "Add tiles."})",
        R"({"complete": true, "reason": "Nothing is left."})",
        "name = \"tile\"\nlocus = \"loop\"\ncarrier = '''\n+ code\n'''\n[intent]\ntext = \"Tile.\"\nevidence = "
        "[\"w/p/K01\"]\n[anchor]\ntext = \"A loop.\"\nevidence = [\"w/p/K01\"]\n[[precondition]]\ntext = "
        "\"Fits.\"\nevidence = [\"w/p/K01\"]\n[[effect]]\ntext = \"It brings 2.0×, 14 % of 3 us.\"\nevidence = "
        "[\"w/p/K01\"]\n[[risk]]\ntext = \"None.\"\nevidence = [\"w/p/R00a\"]\n",
        "same_as = \"stage-tiles\"", "declined = \"They fit this kernel only.\""};
    target.words = {"2.0×",         "0.5x",     "16 × 16", "%",      "µs",  "TFLOP/s",
                    "[[effect]]\n", "evidence", "w/p/K01", "trial:", "'''", "declined",
                    "complete",     "category", "\xc3",    "\"\"\""};
    target.runs = 20'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string text(reinterpret_cast<const char *>(data), size);
    const Result<Proposal> proposal = parseProposal(text);
    if (!proposal) {
        require(proposal.error().code == ErrorCode::InvalidInput, "a bad proposal is InvalidInput");
    } else {
        require(proposal->complete ? !proposal->reason.empty() : !proposal->category.empty(),
                "a proposal says something");
        require((proposal->locus + proposal->title + proposal->summary + proposal->reason).find('\n')
                    == std::string::npos,
                "what goes into prompts and lists is a line");
    }
    for (const Quantity &quantity : quantitiesIn(text))
        require(quantity.value >= 0 && text.find(quantity.text) != std::string::npos,
                "figures stand in the text");
    const LiftGroup shown = group();
    const std::vector<KnownCard> library{{"stage-tiles", shown.language, "tiling", "loop", "Stage tiles."}};
    const Result<LiftedCard> lifted =
        parseLiftedCard(text, shown, library, 1 + static_cast<int>(text.size() % 2));
    if (!lifted)
        return 0;
    if (lifted->declined.empty() && findingsOf(*lifted, shown).empty()) {
        for (const skills::Claim &effect : lifted->card.effects)
            require(!effect.evidence.empty() && shown.figures.count(effect.evidence[0]) == 1,
                    "what is stored cites what was shown");
        require(lifted->sameAs.empty() || lifted->sameAs == library.front().name,
                "what is said to be the same was shown");
        require(!lifted->sameAs.empty()
                    || skills::parseCard(skills::writeCard(lifted->card), "again").has_value(),
                "what is stored can be read again");
    }
    return 0;
}
