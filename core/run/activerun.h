// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/context.h"
#include "core/talk/reply.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace klineage::run {

/// A conversation with the author. Copying it is how a question is asked again from an earlier point.
struct Conversation {
    std::string purpose; ///< "rewrite", "rederive", …
    std::string system;
    std::vector<llm::Message> messages;
    int maxOutputTokens = 0; ///< of the last question

    void user(std::string text, bool cacheUpToHere = false);
    void assistant(std::string text); ///< shortened when it is far larger than any answer
};

/// What deoptimization, lift and admission have in common: they ask, gate and write steps in the run's own order, tell the watcher,
/// and count dollars from the exchanges alone, so that a replay comes to the same steps.
class ActiveRun
{
public:
    explicit ActiveRun(Context &context);

    [[nodiscard]] Context &context() const { return m_context; }
    [[nodiscard]] const Settings &settings() const { return m_context.journal.settings(); }
    [[nodiscard]] kernel::Surface surface() const;

    /// Asks and appends the reply to the conversation. A reply that was cut off or refused is a reply too.
    [[nodiscard]] Result<llm::Reply> ask(Conversation &conversation, const std::string &what);

    /// How a reply is read: what it says, or why it cannot be used, as a whole sentence for the author.
    template <typename T>
    using Reader = std::function<Result<T>(const std::string &text)>;
    /// Asks, and once more when the reply cannot be used, saying why. An Error only when the run cannot go on; a second reply that
    /// cannot be used is an answer without a value.
    template <typename T>
    struct Answer {
        std::optional<T> value;
        std::string problem; ///< of the last reply; empty when there is a value
    };
    template <typename T>
    [[nodiscard]] Result<Answer<T>> askFor(Conversation &conversation, const std::string &what,
                                           const Reader<T> &read, int repairs = 1);

    /// Gates a text against a parent (empty: none). A verdict of any status but `unavailable` is a success: without a device a run
    /// cannot go on, and nothing is recorded then.
    [[nodiscard]] Result<gate::Trial> gate(const std::string &candidate, const std::string &parent,
                                           const std::string &what);
    /// Writes the step with the exchanges since the last one, their dollars and the trial's figures.
    [[nodiscard]] Status step(StepRecord step, const gate::Trial *trial = nullptr);

    /// What ask() and step() are made of, for whoever counts dollars and figures in another way.
    /// send() fills in what the settings say of every question: model, limit of output tokens, what else goes to the server.
    [[nodiscard]] Result<llm::Exchange> send(llm::Request &request, const std::string &what);
    [[nodiscard]] Status write(StepRecord step);
    /// The step's trial and candidate.
    static void name(const gate::Trial &trial, StepRecord &step);

    /// A whole number among the run's options.
    [[nodiscard]] Result<int> option(const char *name, int absent, int least, int most) const;
    /// InvalidInput, with a suggestion, when the run has an option that is none of these or of the gate's.
    [[nodiscard]] Status checkOptions(std::vector<std::string> known) const;

private:
    [[nodiscard]] Result<std::optional<std::string>> refuse(Conversation &conversation,
                                                            const std::string &problem, bool again) const;

    /// Of the next question: max_output_tokens, and once a reply was cut off there most_output_tokens.
    [[nodiscard]] Result<int> outputTokens() const;

    Context &m_context;
    bool m_wasCutOff = false;
    std::vector<int> m_exchanges;
    double m_dollars = 0;
    double m_totalDollars = 0;
    std::string m_device; ///< where the run's first trial was made; the others go there too
    double m_best = 0;
};

/// The reply's problem whatever it says: it was cut off, or the author refused; empty otherwise.
[[nodiscard]] std::string replyProblem(const llm::Reply &reply, int maxOutputTokens);

/// The fenced block of a reply; of several the last one that can be read.
[[nodiscard]] Result<std::string> blockIn(const std::string &reply, const policy::Accepts &canBeRead);
/// The candidate file in a reply: a fenced block that parses as a candidate of the surface.
[[nodiscard]] Result<std::string> candidateIn(const std::string &reply, kernel::Surface surface);

/// The same, but that a run was stopped or has used up its budget is an ending and no error.
[[nodiscard]] Result<Ending> orderly(Result<Ending> ending);

/// "K03.cl": a candidate's name for messages.
[[nodiscard]] std::string candidateName(const std::string &stem, kernel::Surface surface);

template <typename T>
Result<ActiveRun::Answer<T>> ActiveRun::askFor(Conversation &conversation, const std::string &what,
                                               const Reader<T> &read, int repairs)
{
    for (int attempt = 0;; ++attempt) {
        const Result<llm::Reply> reply = ask(conversation, what);
        if (!reply)
            return tl::unexpected(reply.error());
        std::string problem = replyProblem(*reply, conversation.maxOutputTokens);
        if (problem.empty()) {
            Result<T> value = read(reply->text);
            if (value)
                return Answer<T>{std::move(*value), {}};
            problem = value.error().message;
        }
        const auto again = refuse(conversation, problem, attempt < repairs);
        if (!again)
            return tl::unexpected(again.error());
        if (!*again)
            return Answer<T>{std::nullopt, problem};
    }
}

} // namespace klineage::run
