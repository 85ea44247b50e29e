// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "tests/core/llm/loopbackserver.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

/// What must come of a fault, told by what it costs: nothing, what the server counted, or the most that a request can cost.
struct Due {
    std::optional<std::string> text = {}; ///< of the reply; none: there is an error
    klineage::llm::StopReason stop = klineage::llm::StopReason::End;
    klineage::ErrorCode code = klineage::ErrorCode::Protocol;
    std::string says = {}; ///< a part of the error's message, or of the last notice before a reply
    int requests = 1;      ///< that the server saw
    int inFull = 0;        ///< how many of them are charged at the most that they can cost
    klineage::llm::Usage counted = {};
};

/// Besides what the server sends.
struct Circumstances {
    enum class Stop { Never, WhenSeen, WhenAskedAgain };

    int times = 1'000'000; ///< how many requests go wrong; those after them are answered soundly
    bool nobodyListens = false;
    Stop stop = Stop::
        Never; ///< a person stops the request when the server has seen it, or when it would be sent again
    std::optional<double> idleSeconds = {};
    std::optional<double> totalSeconds = {};
};

/// One way in which a model's server goes wrong.
struct ModelFault {
    std::string name;
    bool anthropic = false;
    ServerAnswer answer;
    Due due;
    Circumstances when;
};

/// The table, one dialect after the other where both can go wrong so.
class FaultTable
{
public:
    using Make = std::function<ServerAnswer(bool anthropic)>;

    void one(bool anthropic, const std::string &name, const ServerAnswer &answer, const Due &due,
             const Circumstances &when = {});
    void both(const std::string &name, const Make &make, const Due &due, const Circumstances &when = {});
    void openAi(const std::string &name, const ServerAnswer &answer, const Due &due,
                const Circumstances &when = {});
    void anthropic(const std::string &name, const ServerAnswer &answer, const Due &due,
                   const Circumstances &when = {});

    std::vector<ModelFault> rows;
};

/// How answers, their heads and the connections beneath go wrong; and what their bodies hold.
void addFaultsOfAnswers(FaultTable &table);
void addFaultsOfConnections(FaultTable &table);
void addFaultsOfStreams(FaultTable &table);
void addFaultsOfReplies(FaultTable &table);

namespace faults {

inline const std::string key = "very-secret-key-0123456789";
inline const std::string soundText = "0123456789";
inline const klineage::llm::Usage soundUsage{120, 30, 0, 40};

// What comes of it.
Due kept(const std::string &text = soundText,
         klineage::llm::StopReason stop = klineage::llm::StopReason::End); ///< at what was counted
Due keptInFull(const std::string &text = soundText,
               klineage::llm::StopReason stop = klineage::llm::StopReason::End);
Due keptAfter(int refusals, const std::string &says); ///< these cost nothing
Due refused(klineage::ErrorCode code, const std::string &says);
Due refusedThrice(klineage::ErrorCode code, const std::string &says);
Due broken(klineage::ErrorCode code, const std::string &says); ///< three times, each charged in full

// What the server sends.
ServerAnswer answered(const std::string &body, int status = 200);
ServerAnswer sentRaw(const std::string &bytes);
std::string sound(bool anthropic); ///< a stream of soundText in pieces of three bytes
/// One JSON object; content is JSON.
std::string soundWhole(bool anthropic, const std::string &content = "\"0123456789\"");
std::string errorBody(const std::string &type, const std::string &message);
/// Every place of from, of which there must be one.
std::string changed(std::string text, const std::string &from, const std::string &to);
std::string upTo(const std::string &text, const std::string &last);        ///< all until the end of last
std::string with(const std::string &stream, const std::string &more);      ///< amid the text's pieces
std::string withAtEnd(const std::string &stream, const std::string &more); ///< before the reply is at its end

} // namespace faults
