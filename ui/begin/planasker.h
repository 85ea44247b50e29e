// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/message.h"
#include "core/run/journal.h"

#include <QObject>

#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

namespace klineage::ui {

class KeyRing;

/// What a question will cost.
struct QuestionCost {
    bool isPaid = false;
    double likely = 0; ///< dollars
    double most = 0;
    QString priceDate;
};

/// Asks an author one question, on a thread of its own and under a cap, and writes transcript and ledger down. Lives on the GUI thread; its
/// signals arrive there.
class PlanAsker : public QObject
{
    Q_OBJECT

public:
    explicit PlanAsker(QObject *parent = nullptr);
    ~PlanAsker() override; ///< stops it, and waits for its end

    void setKeys(KeyRing *keys); ///< not owned; nullptr: keys come from the environment

    /// Of settings provider, model, author and capDollars count. NotFound, with the lines to add to which file, for a model without a price.
    [[nodiscard]] static Result<QuestionCost> costOf(const run::Settings &settings,
                                                     const llm::Request &request,
                                                     const std::filesystem::path &workspace);

    /// What is wrong in a sentence; empty when it is being asked. folder is made, and keeps what was said and paid.
    QString ask(const run::Settings &settings, const llm::Request &request,
                const std::filesystem::path &workspace, const std::filesystem::path &folder);
    void stop();
    [[nodiscard]] bool isAsking() const { return m_isAsking; }

signals:
    void progressed(const QString &text); ///< what happens, and how much was written
    void answered(const QString &reply, double dollars);
    /// Stopped, too. dollars: that are spent or may have been charged.
    void failed(const QString &problem, double dollars);

private:
    struct Answer {
        std::optional<std::string> reply;
        QString problem;
        double dollars = 0;
    };
    void finish(const Answer &answer);

    KeyRing *m_keys = nullptr;
    bool m_isAsking = false;
    quint64 m_number = 0; ///< what an earlier question still has to say is dropped
    std::stop_source m_stop;
    std::jthread m_thread;
};

} // namespace klineage::ui
