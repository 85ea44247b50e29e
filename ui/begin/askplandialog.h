// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/message.h"
#include "core/run/journal.h"

#include <QDialog>

#include <filesystem>

class QLabel;
class QPushButton;

namespace klineage::ui {

class AuthorRows;
class KeyRing;

/// Whom to ask for a plan, what that will cost, and the cap. Who was asked last comes first; a key is never kept here.
class AskPlanDialog : public QDialog
{
    Q_OBJECT

public:
    /// request: what will be asked, for its price. keys is not owned, and may be nullptr.
    AskPlanDialog(const llm::Request &request, const std::filesystem::path &workspace, KeyRing *keys,
                  QWidget *parent = nullptr);

    /// After it was accepted.
    [[nodiscard]] run::Settings settings() const;
    [[nodiscard]] QLabel *costLabel() const { return m_cost; }
    [[nodiscard]] QPushButton *askButton() const { return m_ask; }

    void accept() override; ///< remembers who is asked

private:
    void update();

    llm::Request m_request;
    std::filesystem::path m_workspace;
    AuthorRows *m_author = nullptr;
    QLabel *m_cost;
    QPushButton *m_ask;
};

} // namespace klineage::ui
