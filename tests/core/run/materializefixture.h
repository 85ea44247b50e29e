// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/author.h"
#include "core/run/context.h"
#include "tests/core/run/runfixture.h"

#include <charconv>

namespace klineage::tests {

/// An author that is a function of the question alone, so that a run that is gone on with hears the same.
class FunctionProvider : public llm::Provider
{
public:
    explicit FunctionProvider(std::function<std::string(const llm::Request &)> answer)
        : m_answer(std::move(answer))
    {}

    int calls = 0;
    std::function<void()> beforeAnswer;
    llm::StopReason stopReason = llm::StopReason::End;

    [[nodiscard]] std::string name() const override { return "exec"; }
    [[nodiscard]] bool isPaid() const override { return true; }
    [[nodiscard]] tl::expected<llm::Reply, llm::ProviderFailure> ask(const llm::Request &request,
                                                                     std::stop_token stop,
                                                                     const llm::TextCallback &onText) override
    {
        if (stop.stop_requested())
            return tl::unexpected(llm::ProviderFailure{{ErrorCode::Cancelled, "Stopped.", {}}, {}, false});
        ++calls;
        if (beforeAnswer)
            beforeAnswer();
        llm::Reply reply;
        reply.text = m_answer(request);
        reply.stop = stopReason;
        reply.usage = {1000, 0, 0, 100};
        if (onText)
            onText(reply.text);
        return reply;
    }

private:
    std::function<std::string(const llm::Request &)> m_answer;
};

/// A dollar for a million tokens of input, ten for output: a question of FunctionProvider costs 0.002 dollars.
inline llm::PriceTable testPriceTable()
{
    llm::PriceTable table;
    llm::Price price;
    price.model = "test-model";
    price.input = price.cacheRead = price.cacheWrite = 1;
    price.output = 10;
    table.prices.push_back(price);
    return table;
}

inline std::string candidateOf(const std::string &code)
{
    return "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"toy\"\ngrid = [\"R\"]\nblock = [1]\n"
           "args = [\"x\", \"y\", \"int C\"]\n*/\n"
           + code + "\n";
}

inline std::string fencedCandidate(const std::string &code)
{
    return "I change one thing.\n\n```c\n" + candidateOf(code) + "```\n";
}

/// Judges by the code: "ns(500)" is correct and takes as long, "wrong", "suspect" and the like are what they say; the root takes 2000.
inline FakeVerdict judgeByCode(const std::string &text)
{
    const std::size_t at = text.rfind("ns(");
    if (at != std::string::npos) {
        double ns = 0;
        const char *begin = text.data() + at + 3;
        std::from_chars(begin, text.data() + text.size(), ns);
        return {gate::VerdictStatus::Correct, ns, "Correct."};
    }
    for (const auto status : {gate::VerdictStatus::Wrong, gate::VerdictStatus::Suspect,
                              gate::VerdictStatus::CompileError, gate::VerdictStatus::Crash}) {
        if (text.find(std::string("is ") + gate::toString(status)) != std::string::npos)
            return {status, 0, std::string("It is ") + gate::toString(status) + '.'};
    }
    return {gate::VerdictStatus::Correct, 2000, "Correct."};
}

/// The run in directory, gone on with to its end, an error or a stop.
inline Result<run::Ending> goOn(const std::filesystem::path &workspace,
                                const std::filesystem::path &directory, llm::Provider &provider,
                                const run::GateFunction &gate, run::Watcher watcher = {},
                                std::stop_token stop = {})
{
    Result<run::Journal> journal = run::Journal::open(directory);
    if (!journal)
        return tl::unexpected(journal.error());
    Result<llm::Author> author =
        llm::Author::open(directory, provider, testPriceTable(), journal->settings().capDollars);
    if (!author)
        return tl::unexpected(author.error());
    run::Context context{workspace, *journal, *author, gate, stop, std::move(watcher)};
    Result<run::Ending> ending = run::materialize(context);
    if (ending) {
        if (Status finished = journal->finish(*ending); !finished)
            return tl::unexpected(finished.error());
    }
    return ending;
}

} // namespace klineage::tests
