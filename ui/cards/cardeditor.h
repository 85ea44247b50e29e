// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <QWidget>

#include <optional>

class QLabel;
class QPlainTextEdit;
class QPushButton;
class QTimer;

namespace klineage::ui {

class HighlightedEdit;
class WorkspaceModel;

/// Edits a card's TOML with validation as you type, unlimited undo, and a draft on disk that survives a crash.
class CardEditor : public QWidget
{
    Q_OBJECT

public:
    /// The workspace says whether cited evidence exists, and drafts are kept apart for each.
    explicit CardEditor(const WorkspaceModel *workspace, QWidget *parent = nullptr);

    /// Starts editing; a newer draft of the same card and revision is offered back by loading it.
    void open(const skills::CardRecord &record);
    [[nodiscard]] QString cardName() const { return m_name; }
    [[nodiscard]] bool isModified() const;
    /// The edited card, when it has no errors.
    [[nodiscard]] std::optional<skills::Card> card() const { return m_card; }
    [[nodiscard]] QPlainTextEdit *text() const;
    /// True when a draft for this card is on disk.
    [[nodiscard]] bool hasDraft(const QString &cardName) const;
    void discardDraft();
    /// Another workspace is open than that of the card: what was typed is kept as a draft of its own, and nothing more is done with it. True
    /// when it was so.
    bool leaveIfElsewhere();

signals:
    void saveRequested(const klineage::skills::Card &card);
    void cancelled();

private:
    void validate();
    void writeDraft();
    [[nodiscard]] QString openWorkspace() const;
    [[nodiscard]] static QString draftPath(const QString &workspace, const QString &cardName);

    const WorkspaceModel *m_workspace;
    HighlightedEdit *m_text;
    QLabel *m_findings;
    QPushButton *m_save;
    QTimer *m_timer;
    QString m_home; ///< root of the workspace that the card is of
    QString m_name;
    QString m_original;
    std::string m_carrier;
    std::string m_buildingBlock;
    int m_revision = 0;
    std::optional<skills::Card> m_card;
};

} // namespace klineage::ui
